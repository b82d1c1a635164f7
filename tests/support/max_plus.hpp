// The slow and plain way to say when the actions of a schedule begin, and what its ranks keep in
// memory meanwhile: what schedules are checked against.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "strategies/schedules/step_times.hpp"

namespace rehearse {

struct Evaluation {
  std::map<Action, std::int64_t> begin;
  std::int64_t makespan = 0;
  std::vector<std::int64_t> first, last;  // by rank: begin of its first action, end of its last
  std::vector<std::int64_t> busy;         // by rank
  /// By rank: the most micro-batches of its stages that were begun and not done with (until B or
  /// W).
  std::vector<std::int64_t> in_flight;
};

/// Begins grow until each is at least the end of all it waits for; fails the test when they never
/// stop growing.
Evaluation evaluate(const Schedule&, const StageTimes& = {});

}  // namespace rehearse
