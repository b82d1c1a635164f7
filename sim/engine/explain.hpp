// Every number can be asked why: what an op waited for, what the run hung on, which links were
// full.
#pragma once

#include <string>

#include "sim/engine/paths.hpp"
#include "sim/program/timeline.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// "1.234 us", with a unit that keeps the number between 1 and 1000.
std::string readable(Time time);
std::string readable(Bytes bytes);
std::string readable(BytesPerSecond rate);
/// "node0/gpu3 -> node0/nvswitch0"
std::string link_name(const Topology& topology, LinkId link);

/// When an op ran, what it waited for and how long, and what its time went into.
std::string explain_op(const Program& program, const Timeline& timeline, const Paths& paths,
                       const Topology& topology, OpId id);

/// The critical path, runs of alike ops as one line each, at most `most` lines.
std::string explain_critical_path(const Program& program, const Timeline& timeline,
                                  std::size_t most = 12);

/// The links with the highest load over the whole run, as a share of their capacity.
std::string explain_links(const Timeline& timeline, const Topology& topology, std::size_t most = 5);

}  // namespace rehearse
