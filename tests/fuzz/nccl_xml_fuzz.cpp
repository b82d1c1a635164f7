// Any bytes as NCCL's topology XML, read, and written and read once more.
#include "tests/fuzz/topology_fuzz.hpp"
#include "topology/formats/io_nccl_xml.hpp"

namespace {

// What NCCL's format can say is written and read back without an error.
rehearse::Topology read_twice(std::string_view text) {
  rehearse::Topology topology = rehearse::parse_nccl_xml(text, "fuzz.xml");
  const std::string again = rehearse::write_nccl_xml(topology);
  ASSERT(rehearse::parse_nccl_xml(again, "again.xml").rank_count() == topology.rank_count());
  return topology;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rehearse::fuzz_reader(data, size, [](std::string_view text) { return read_twice(text); });
}
