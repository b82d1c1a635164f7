// When each action of a schedule begins if stages are all alike and communication is free: for
// drawings and checks. What a step really takes is the engine's to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strategies/schedules/schedule.hpp"

namespace rehearse {

/// How long a stage works, in steps of any length; a full backward is input and weight.
struct StageTimes {
  std::int64_t forward = 1, backward_input = 1, backward_weight = 1;
  std::int64_t of(ActionKind) const;
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

struct ScheduleTimes {
  std::vector<std::vector<std::int64_t>> begin;  // by rank and cell; of an idle cell -1
  std::int64_t makespan = 0;
  /// By rank, the cell that waits for ever; the row's length for a rank that came to its end.
  std::vector<std::size_t> reached;
  bool complete = true;  // every rank came to its end
};

/// Every action as early as its row and its inputs allow. Stages and ranks must exist; what follows
/// an action that nobody's output lets begin is left at -1.
ScheduleTimes step_times(const Schedule&, const StageTimes& = {});

/// The same order, with a cell for each step up to the rank's last action: one of n steps has n - 1
/// empty cells after it. The schedule must be able to run.
Schedule with_idle_steps(const Schedule&, const StageTimes& = {});

}  // namespace rehearse
