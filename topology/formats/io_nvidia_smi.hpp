// The matrix of `nvidia-smi topo -m`. It tells classes of connection and no rates: those come from
// the documented defaults in the .cpp, and the Topology's name says that they do.
#pragma once

#include <string>
#include <string_view>

#include "topology/topology.hpp"

namespace rehearse {

Topology parse_nvidia_smi(std::string_view text, const std::string& file);

/// The matrix of one node's GPUs and NICs, as nvidia-smi would print it there.
std::string write_nvidia_smi(const Topology& topology, NodeId node = NodeId{0});

}  // namespace rehearse
