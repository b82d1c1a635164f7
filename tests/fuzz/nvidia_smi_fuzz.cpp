// Any bytes as the matrix of `nvidia-smi topo -m`.
#include "tests/fuzz/topology_fuzz.hpp"
#include "topology/formats/io_nvidia_smi.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rehearse::fuzz_reader(data, size, [](std::string_view text) {
    return rehearse::parse_nvidia_smi(text, "fuzz.txt");
  });
}
