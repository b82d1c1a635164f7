// A file is read where it is named; what the scenario itself changes comes after it.
#include "tools/cli/calibrated.hpp"

#include "sim/scenario/calibration.hpp"
#include "sim/scenario/scenario_machine.hpp"

namespace rehearse {

Topology calibrated(const Scenario& scenario, Topology topology) {
  if (!scenario.calibration.empty())
    topology = apply(load_calibration(scenario.calibration), std::move(topology));
  return machine_for(scenario, std::move(topology));
}

Scenario launched(Scenario scenario) {
  if (scenario.calibration.empty()) return scenario;
  const Calibration calibration = load_calibration(scenario.calibration);
  return apply(calibration, std::move(scenario));
}

std::string calibration_words(const Scenario& scenario) {
  if (scenario.calibration.empty()) return describe(std::optional<Calibration>{});
  return describe(std::optional{load_calibration(scenario.calibration)});
}

}  // namespace rehearse
