// A fresh folder to stand in while a case runs, so that messages show the names as users type them.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/bad_input/case.hpp"

namespace rehearse::bad_input {

class Folder {
 public:
  /// With the files of the case in it.
  explicit Folder(const Case& broken) : before_{std::filesystem::current_path()} {
    std::string pattern = (std::filesystem::temp_directory_path() / "rehearse-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    std::filesystem::current_path(path_);
    for (const auto& [name, content] : broken.files) {
      if (name.ends_with('/'))
        std::filesystem::create_directory(name);
      else
        std::ofstream{name, std::ios::binary} << content;
    }
  }
  ~Folder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

 private:
  std::filesystem::path before_, path_;
};

}  // namespace rehearse::bad_input
