// A folder for each test, gone with it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace rehearse {

class OwnFolder : public testing::Test {
 protected:
  OwnFolder() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string(test.test_suite_name()) + "_" + test.name());
    std::filesystem::create_directories(folder_);
  }
  ~OwnFolder() override {
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }

  const std::filesystem::path& folder() const { return folder_; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Discarded where it is none.
  nlohmann::json read_json(const std::string& name) const {
    return nlohmann::json::parse(read(name), nullptr, false);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace rehearse
