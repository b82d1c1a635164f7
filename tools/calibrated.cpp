// A file is read where it is named.
#include "tools/calibrated.hpp"

#include "sim/calibration.hpp"

namespace rehearse {

Topology calibrated(const Scenario& scenario, Topology topology) {
  if (scenario.calibration.empty()) return topology;
  return apply(load_calibration(scenario.calibration), std::move(topology));
}

std::string calibration_words(const Scenario& scenario) {
  if (scenario.calibration.empty()) return describe(std::optional<Calibration>{});
  return describe(std::optional{load_calibration(scenario.calibration)});
}

}  // namespace rehearse
