// The emulated machine of the command line's tests: made before main by what the environment says,
// and asked at the end what was left behind. REHEARSE_EMULATED="devices=4 failing_launch=3".
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/emulated_cuda/machine.hpp"

namespace {

emulated_cuda::Options options_of(const char* text) {
  emulated_cuda::Options options;
  options.memory = 64 << 20;
  bool is_killed = true;  // of several processes only one is
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const int value = std::stoi(word.substr(equals + 1));
    if (name == "devices") options.devices = value;
    if (name == "memory") options.memory = static_cast<std::size_t>(value);
    if (name == "capability") options.capability = value;
    if (name == "failing_launch") options.faults.failing_launch = value;
    if (name == "killed_rank")
      is_killed = std::getenv("OMPI_COMM_WORLD_RANK") == nullptr ||
                  std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")) == value;
    if (name == "killing_launch" && is_killed) options.faults.killing_launch = value;
    if (name == "nccl_error") options.faults.nccl_error = value;
    if (name == "vanished_device") options.faults.vanished_device = value;
  }
  return options;
}

struct Machine {
  Machine() { emulated_cuda::reset(options_of(std::getenv("REHEARSE_EMULATED"))); }
  ~Machine() {
    const std::string left = emulated_cuda::leaks();
    if (left.empty()) return;
    std::fprintf(stderr, "left behind: %s\n", left.c_str());
    std::fflush(nullptr);
    _exit(99);
  }
};

const Machine machine;

}  // namespace
