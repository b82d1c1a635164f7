// From a scenario's file to what can be predicted or run, the same for every command: read,
// checked, on its machine as it was measured and as it runs, with its framework's launches.
//
//   file ─load─▶ LoadedScenario ─check─▶ ─profile─▶ machine and launches as measured ─▶ ready
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/scenario/calibration.hpp"
#include "sim/scenario/scenario_file.hpp"

namespace rehearse {

/// Throws InputError with every mistake of the file, each at its place.
LoadedScenario ready_scenario(const std::string& file, std::span<const std::string> sets = {});
/// The same for one that was read already; with the profile that it names.
LoadedScenario ready(LoadedScenario loaded);
/// With this profile, or without any.
LoadedScenario ready(LoadedScenario loaded, const std::optional<Calibration>& profile);

/// The parts of `ready`, for those who change a scenario point by point.
std::optional<Calibration> profile_of(const Scenario& scenario);
Topology machine_of(const Scenario& scenario, Topology topology,
                    const std::optional<Calibration>& profile);
Scenario with_launches(Scenario scenario, const std::optional<Calibration>& profile);

/// For reports: what stands behind the figures, with its own error.
std::string calibration_words(const Scenario& scenario);

}  // namespace rehearse
