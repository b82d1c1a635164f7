// The page has no files, and so no readers of XML: a machine in NCCL's or GraphML's form is told
// that here, and the lab needs no pugixml.
#include "sim/base/error.hpp"
#include "topology/formats/io_graph.hpp"
#include "topology/formats/io_nccl_xml.hpp"

namespace rehearse {

namespace {

[[noreturn]] void refuse(const std::string& file) {
  throw InputError({file},
                   "XML is read by the command line only: 'rehearse topo convert' makes "
                   "TOML of it");
}

}  // namespace

Topology parse_nccl_xml(std::string_view, const std::string& file) { refuse(file); }
Topology parse_graphml(std::string_view, const std::string& file) { refuse(file); }

}  // namespace rehearse
