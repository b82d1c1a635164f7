// The kernels that scenarios consist of, each measured once on real ranks, and what the cost model
// makes of them.
#pragma once

#include <string>
#include <vector>

#include "tools/measure_host.hpp"
#include "tools/profile.hpp"
#include "tools/progress.hpp"

namespace rehearse {

/// Lowers the scenario files for real ranks, measures every different compute op of theirs with all
/// ranks at work, and adds to the changes: products by shape, and one line over bytes for the rest.
/// Notes and residuals go to the profile.
void measure_scenario_kernels(const HostRanks& ranks, const std::vector<std::string>& files,
                              const Topology& topology, Progress& progress, Profile& profile,
                              AcceleratorChanges& changes);

}  // namespace rehearse
