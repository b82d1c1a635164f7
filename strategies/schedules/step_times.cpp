// A walk over all rows at once: each rank runs until an input is missing, and whoever makes that
// input wakes it.
#include "strategies/schedules/step_times.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/assert.hpp"

namespace rehearse {

std::int64_t StageTimes::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::forward:
      return forward;
    case ActionKind::backward:
      return backward_input + backward_weight;
    case ActionKind::backward_input:
      return backward_input;
    case ActionKind::backward_weight:
      return backward_weight;
  }
  ASSERT(false);
}

namespace {

constexpr std::int64_t never = -1;

class Walk {
 public:
  Walk(const Schedule& schedule, const StageTimes& times)
      : schedule_{schedule},
        times_{times},
        forward_done_(std::size_t{schedule.stages} * schedule.microbatches, never),
        backward_done_(forward_done_),
        now_(schedule.ranks.size(), 0),
        waits_(schedule.ranks.size(), false) {
    result_.reached.assign(schedule.ranks.size(), 0);
    for (const ScheduleRow& row : schedule.ranks) result_.begin.emplace_back(row.size(), never);
  }

  ScheduleTimes run() && {
    for (std::size_t rank = schedule_.ranks.size(); rank-- > 0;) awake_.push_back(rank);
    while (!awake_.empty()) {
      const std::size_t rank = awake_.back();
      awake_.pop_back();
      run_row(rank);
    }
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      result_.makespan = std::max(result_.makespan, now_[rank]);
      result_.complete &= result_.reached[rank] == schedule_.ranks[rank].size();
    }
    return std::move(result_);
  }

 private:
  void run_row(std::size_t rank) {
    const ScheduleRow& row = schedule_.ranks[rank];
    for (std::size_t& cell = result_.reached[rank]; cell < row.size(); ++cell) {
      if (!row[cell]) continue;
      const std::int64_t ready = inputs_ready(*row[cell]);
      waits_[rank] = ready == never;
      if (waits_[rank]) return;
      const std::int64_t begin = std::max(now_[rank], ready);
      result_.begin[rank][cell] = begin;
      now_[rank] = begin + times_.of(row[cell]->kind);
      finish(*row[cell], now_[rank]);
    }
  }

  // When the last input of an action is there, or never so far.
  std::int64_t inputs_ready(const Action& action) const {
    const std::size_t own = place(action.stage, action.microbatch);
    switch (action.kind) {
      case ActionKind::forward:
        return action.stage == 0 ? 0 : forward_done_[own - schedule_.microbatches];
      case ActionKind::backward_weight:
        return backward_done_[own];
      default:
        break;
    }
    if (action.stage + 1 == schedule_.stages || forward_done_[own] == never)
      return forward_done_[own];
    return backward_done_[own + schedule_.microbatches];
  }

  void finish(const Action& action, std::int64_t time) {
    const std::size_t own = place(action.stage, action.microbatch);
    if (action.kind == ActionKind::forward) {
      forward_done_[own] = time;
      if (action.stage + 1 < schedule_.stages) wake(schedule_.rank_of[action.stage + 1]);
    } else if (action.kind != ActionKind::backward_weight) {
      backward_done_[own] = time;
      if (action.stage > 0) wake(schedule_.rank_of[action.stage - 1]);
    }
  }

  void wake(std::size_t rank) {
    if (!waits_[rank]) return;
    waits_[rank] = false;
    awake_.push_back(rank);
  }

  std::size_t place(std::size_t stage, std::size_t microbatch) const {
    return stage * schedule_.microbatches + microbatch;
  }

  const Schedule& schedule_;
  const StageTimes& times_;
  std::vector<std::int64_t> forward_done_, backward_done_;  // by stage and micro-batch
  std::vector<std::int64_t> now_;                           // by rank
  std::vector<bool> waits_;                                 // by rank: not awake, not at its end
  std::vector<std::size_t> awake_;
  ScheduleTimes result_;
};

}  // namespace

ScheduleTimes step_times(const Schedule& schedule, const StageTimes& times) {
  ASSERT(schedule.rank_of.size() == schedule.stages);
  return Walk(schedule, times).run();
}

Schedule with_idle_steps(const Schedule& schedule, const StageTimes& times) {
  ASSERT(times.forward > 0 && times.backward_input > 0 && times.backward_weight > 0);
  const ScheduleTimes when = step_times(schedule, times);
  ASSERT(when.complete);
  Schedule drawing{schedule.stages, schedule.microbatches, {}, schedule.rank_of};
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    ScheduleRow& row = drawing.ranks.emplace_back();
    for (std::size_t cell = 0; cell < schedule.ranks[rank].size(); ++cell) {
      if (!schedule.ranks[rank][cell]) continue;
      row.resize(static_cast<std::size_t>(when.begin[rank][cell]));
      row.push_back(schedule.ranks[rank][cell]);
    }
  }
  return drawing;
}

}  // namespace rehearse
