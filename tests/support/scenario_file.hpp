// A scenario in a file of its own, for as long as a test needs it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace rehearse {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text, const std::string& ending = ".toml") {
    static std::atomic<int> count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("rehearse-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ending))
                .string();
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Small enough to be quick, with something in every dimension but context and experts.
inline constexpr const char* small_scenario = R"(schema = 1
title = "small"
[model]
preset = "gpt2"
[cluster]
name = "dgx-a100"
nodes = 2
[parallelism]
tp = 2
pp = 2
[training]
micro_batch_size = 1
global_batch_size = 32
tokens = "1B"
price_per_gpu_hour = "2 USD"
)";

}  // namespace rehearse
