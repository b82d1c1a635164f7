// Placeholder until the reader lands.
#include "topology/io_nccl_xml.hpp"
#include "sim/error.hpp"
namespace rehearse {
Topology parse_nccl_xml(std::string_view, const std::string& file) {
  throw InputError(Place{file}, "this format is not read yet");
}
}  // namespace rehearse
