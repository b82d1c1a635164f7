// The scenario's machine as it was measured, when the scenario names a calibration.
#pragma once

#include <string>

#include "sim/scenario.hpp"
#include "topology/topology.hpp"

namespace rehearse {

/// The topology with the scenario's calibration laid over it; as it is when there is none. Throws
/// InputError.
Topology calibrated(const Scenario& scenario, Topology topology);

/// For reports: what stands behind the figures, with its own error.
std::string calibration_words(const Scenario& scenario);

}  // namespace rehearse
