// What a scenario changes about its machine that no cluster file says: bad cables, and kernels
// launched as nodes of a graph.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// The machine on which the scenario runs. Ranks that it does not have are passed over: the checks
/// of scenarios complain of them.
Topology machine_for(const Scenario& scenario, Topology topology);

}  // namespace rehearse
