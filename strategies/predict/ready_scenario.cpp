// What was measured comes first, then what the scenario itself changes about its machine.
#include "strategies/predict/ready_scenario.hpp"

#include "sim/scenario/scenario_machine.hpp"
#include "strategies/predict/check_scenario.hpp"

namespace rehearse {

namespace {

LoadedScenario on_its_machine(LoadedScenario loaded, const std::optional<Calibration>& profile) {
  loaded.topology = machine_of(loaded.scenario, std::move(loaded.topology), profile);
  loaded.scenario = with_launches(std::move(loaded.scenario), profile);
  return loaded;
}

}  // namespace

std::optional<Calibration> profile_of(const Scenario& scenario) {
  if (scenario.calibration.empty()) return std::nullopt;
  return load_calibration(scenario.calibration);
}

Topology machine_of(const Scenario& scenario, Topology topology,
                    const std::optional<Calibration>& profile) {
  return machine_for(scenario, profile ? apply(*profile, std::move(topology)) : topology);
}

Scenario with_launches(Scenario scenario, const std::optional<Calibration>& profile) {
  return profile ? apply(*profile, std::move(scenario)) : scenario;
}

LoadedScenario ready(LoadedScenario loaded, const std::optional<Calibration>& profile) {
  check_scenario(loaded);
  return on_its_machine(std::move(loaded), profile);
}

LoadedScenario ready(LoadedScenario loaded) {
  check_scenario(loaded);  // before its profile is read: the scenario's mistakes come first
  const std::optional<Calibration> profile = profile_of(loaded.scenario);
  return on_its_machine(std::move(loaded), profile);
}

LoadedScenario ready_scenario(const std::string& file, std::span<const std::string> sets) {
  return ready(load_scenario(file, sets));
}

std::string calibration_words(const Scenario& scenario) { return describe(profile_of(scenario)); }

}  // namespace rehearse
