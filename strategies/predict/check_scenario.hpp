// Everything about a scenario that its file alone does not show to be wrong: sizes against the
// machine and the model, batches against sizes, names of schedules, algorithms and protocols.
#pragma once

#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "sim/workload/workload.hpp"
#include "topology/topology.hpp"

namespace rehearse {

std::vector<KeyProblem> scenario_problems(const Scenario& scenario, const Workload& workload,
                                          const Topology& topology);

/// Throws InputError with all of them, each at the key in the file that is to blame.
void check_scenario(const LoadedScenario& loaded);

}  // namespace rehearse
