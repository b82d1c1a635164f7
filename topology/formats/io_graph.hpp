// Topologies as graphs for other tools: GraphML (networkx, yEd) in and out, Graphviz DOT out.
#pragma once

#include <string>
#include <string_view>

#include "topology/topology.hpp"

namespace rehearse {

/// Node keys name, kind, node, reduces, accelerator; edge keys bandwidth and latency with units as
/// text, and kind. Undirected edges are cables: both directions.
Topology parse_graphml(std::string_view text, const std::string& file);

/// Reads back as an equal Topology.
std::string write_graphml(const Topology& topology);

std::string write_dot(const Topology& topology);

}  // namespace rehearse
