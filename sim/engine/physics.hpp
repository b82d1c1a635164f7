// What no result may break, whatever engine made it: time runs forward, bytes are conserved, and no
// link carries more than it can. Run on every result, in every build.
#pragma once

#include "sim/engine/paths.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// Throws CheckFailed with one line that names the first op or link that breaks a law. Costs one
/// pass over ops, edges and crossings.
void check_physics(const Program& program, const Paths& paths, const Topology& topology,
                   const Timeline& timeline);

}  // namespace rehearse
