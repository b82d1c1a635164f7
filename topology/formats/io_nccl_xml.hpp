// NCCL's topology XML (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): one node as NCCL sees it. Rates follow
// NCCL's own rules, so they are achievable rates, not nameplate ones; `name` says so.
#pragma once

#include <string>
#include <string_view>

#include "topology/topology.hpp"

namespace rehearse {

/// Throws InputError at the place of the first mistake.
Topology parse_nccl_xml(std::string_view text, const std::string& file);

/// One node of the topology (the first), as far as the format can say it.
std::string write_nccl_xml(const Topology& topology);

}  // namespace rehearse
