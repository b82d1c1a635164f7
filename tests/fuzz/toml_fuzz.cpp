// Any bytes as a cluster file in TOML.
#include "tests/fuzz/topology_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rehearse::fuzz_reader(
      data, size, [](std::string_view text) { return rehearse::parse_cluster(text, "fuzz.toml"); });
}
