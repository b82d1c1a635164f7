// What a sweep found, for people and for scripts.
#pragma once

#include <string>
#include <vector>

#include "tools/sweep/scaling.hpp"
#include "tools/sweep/sweep_run.hpp"

namespace rehearse {

struct SweepReport {
  const LoadedScenario& loaded;
  const std::vector<Axis>& axes;
  const std::vector<SweepPoint>& points;
  std::size_t top = 10;

  /// The fastest that fits, by samples a second; points.size() when none does.
  std::size_t best() const;
};

std::string sweep_text(const SweepReport& report);
/// One row for each point, also for those that do not come out even.
std::string sweep_csv(const SweepReport& report);
std::string sweep_json(const SweepReport& report);

}  // namespace rehearse
