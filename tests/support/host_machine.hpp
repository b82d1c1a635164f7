// The machine of tests that run for real, with as many ranks as they need.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/places.hpp"

namespace rehearse {

/// The text of a cluster file.
inline std::string host_machine(int ranks) {
  std::ifstream file{REHEARSE_SOURCE_DIR "/tests/support/host_machine.toml"};
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string four = "gpus = 4";
  return text.replace(text.find(four), four.size(), "gpus = " + std::to_string(ranks));
}

}  // namespace rehearse
