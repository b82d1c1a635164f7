// The scenario's machine as it was measured, when the scenario names a calibration, and as it runs:
// with its bad cables and launched graphs.
#pragma once

#include <string>

#include "sim/scenario/scenario.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// The topology with the scenario's calibration laid over it, when there is one, and what else the
/// scenario changes (sim/scenario/scenario_machine.hpp). Throws InputError.
Topology calibrated(const Scenario& scenario, Topology topology);

/// The scenario with the launches of its framework as its calibration has them.
Scenario launched(Scenario scenario);

/// For reports: what stands behind the figures, with its own error.
std::string calibration_words(const Scenario& scenario);

}  // namespace rehearse
