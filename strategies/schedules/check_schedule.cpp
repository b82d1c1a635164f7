// One pass over the rows notes where each action is; the rest asks those notes.
#include "strategies/schedules/check_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "sim/base/error.hpp"
#include "strategies/schedules/step_times.hpp"

namespace rehearse {

namespace {

constexpr std::uint32_t nowhere = 0;  // cells count from 1 in the notes

class ScheduleCheck {
 public:
  explicit ScheduleCheck(const Schedule& schedule) : schedule_{schedule} {}

  std::vector<ScheduleProblem> run() && {
    if (!shape_is_possible()) return std::move(problems_);
    for (auto& of_kind : notes_)
      of_kind.assign(std::size_t{schedule_.stages} * schedule_.microbatches, nowhere);
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) note_row(rank);
    for (std::uint32_t stage = 0; stage < schedule_.stages; ++stage) {
      check_order(stage);
      report_missing(stage);
    }
    if (problems_.empty()) find_deadlocks();
    std::stable_sort(problems_.begin(), problems_.end(), [](const auto& a, const auto& b) {
      return std::tie(a.rank, a.cell) < std::tie(b.rank, b.cell);
    });
    return std::move(problems_);
  }

 private:
  bool shape_is_possible() {
    const std::size_t ranks = schedule_.ranks.size();
    if (ranks == 0) report(0, 0, "a schedule without ranks");
    if (schedule_.rank_of.size() != schedule_.stages)
      report(0, 0,
             fmt::format("{} stages, but ranks for {} of them", schedule_.stages,
                         schedule_.rank_of.size()));
    for (std::size_t stage = 0; stage < schedule_.rank_of.size(); ++stage)
      if (schedule_.rank_of[stage] >= ranks)
        report(0, 0,
               fmt::format("stage {} is on rank {} of a pipeline of {} ranks", stage,
                           schedule_.rank_of[stage], ranks));
    return problems_.empty();
  }

  void note_row(std::size_t rank) {
    const ScheduleRow& row = schedule_.ranks[rank];
    for (std::size_t cell = 0; cell < row.size(); ++cell) {
      if (!row[cell]) continue;
      const Action& action = *row[cell];
      if (action.stage >= schedule_.stages || action.microbatch >= schedule_.microbatches) {
        report(rank, cell,
               fmt::format("{}: there are {} stages and {} micro-batches", to_string(action),
                           schedule_.stages, schedule_.microbatches));
      } else if (schedule_.rank_of[action.stage] != rank) {
        report(rank, cell,
               fmt::format("{} is on rank {}, but stage {} is on rank {}", to_string(action), rank,
                           action.stage, schedule_.rank_of[action.stage]));
      } else if (has(action)) {
        report(rank, cell, fmt::format("{} for the second time", to_string(action)));
      } else {
        notes_[static_cast<std::size_t>(action.kind)][place(action)] =
            static_cast<std::uint32_t>(cell + 1);
      }
    }
  }

  // F before B or I, I before W, and not both kinds of backward.
  void check_order(std::uint32_t stage) {
    using enum ActionKind;
    for (std::uint32_t i = 0; i < schedule_.microbatches; ++i) {
      check_before({stage, forward, i}, {stage, backward, i});
      check_before({stage, forward, i}, {stage, backward_input, i});
      check_before({stage, backward_input, i}, {stage, backward_weight, i});
      for (const ActionKind half : {backward_input, backward_weight})
        if (has({stage, backward, i}) && has({stage, half, i}))
          report_at({stage, half, i}, fmt::format("{} and {}: a backward is B, or I and W",
                                                  to_string(Action{stage, half, i}),
                                                  to_string(Action{stage, backward, i})));
    }
  }

  void check_before(const Action& first, const Action& second) {
    if (!has(first) || !has(second) || note_of(first) < note_of(second)) return;
    report_at(second, fmt::format("{} before {}", to_string(second), to_string(first)));
  }

  void report_missing(std::uint32_t stage) {
    using enum ActionKind;
    std::vector<std::uint32_t> forwards, backwards, inputs, weights;
    for (std::uint32_t i = 0; i < schedule_.microbatches; ++i) {
      const bool input = has({stage, backward_input, i}), weight = has({stage, backward_weight, i});
      if (!has({stage, forward, i})) forwards.push_back(i);
      if (has({stage, backward, i})) continue;
      if (!input && !weight) backwards.push_back(i);
      if (input && !weight) weights.push_back(i);
      if (weight && !input) inputs.push_back(i);
    }
    report_missing(stage, "F", forwards);
    report_missing(stage, "B, nor I and W,", backwards);
    report_missing(stage, "I", inputs);
    report_missing(stage, "W", weights);
  }

  void report_missing(std::uint32_t stage, std::string_view what,
                      const std::vector<std::uint32_t>& microbatches) {
    if (microbatches.empty()) return;
    constexpr std::size_t shown = 5;
    std::string list;
    for (std::size_t i = 0; i < std::min(shown, microbatches.size()); ++i)
      list += fmt::format("{}{}", i == 0 ? "" : ", ", microbatches[i]);
    if (microbatches.size() > shown) list += fmt::format(", … ({} in all)", microbatches.size());
    const std::size_t rank = schedule_.rank_of[stage];
    report(rank, schedule_.ranks[rank].size(),
           fmt::format("stage {} has no {} of micro-batch{} {}", stage, what,
                       microbatches.size() > 1 ? "es" : "", list));
  }

  // Each rank that cannot go on waits for one action, and that for its own rank's next one: from
  // any of them the way leads into a circle.
  void find_deadlocks() {
    const ScheduleTimes when = step_times(schedule_);
    std::vector<std::size_t> seen_from(schedule_.ranks.size(), schedule_.ranks.size());
    for (std::size_t start = 0; start < schedule_.ranks.size(); ++start) {
      if (when.reached[start] == schedule_.ranks[start].size()) continue;
      std::size_t rank = start;
      for (; seen_from[rank] == schedule_.ranks.size(); rank = next_rank(when, rank))
        seen_from[rank] = start;
      if (seen_from[rank] == start) report_circle(when, rank);
    }
  }

  void report_circle(const ScheduleTimes& when, std::size_t first) {
    std::string text = "deadlock";
    std::size_t rank = first;
    do {
      const Action& action = *schedule_.ranks[rank][when.reached[rank]];
      text += fmt::format("{} rank {} at {} waits for {}", rank == first ? ":" : ",", rank,
                          to_string(action), to_string(missing_input(action)));
      rank = next_rank(when, rank);
    } while (rank != first);
    report(first, when.reached[first], std::move(text));
  }

  std::size_t next_rank(const ScheduleTimes& when, std::size_t rank) const {
    return schedule_.rank_of[missing_input(*schedule_.ranks[rank][when.reached[rank]]).stage];
  }

  // Of an action whose own stage's earlier parts come first: what another stage owes it.
  Action missing_input(const Action& action) const {
    using enum ActionKind;
    if (action.kind == forward) return {action.stage - 1, forward, action.microbatch};
    const Action whole{action.stage + 1, backward, action.microbatch};
    return has(whole) ? whole : Action{whole.stage, backward_input, whole.microbatch};
  }

  std::size_t place(const Action& action) const {
    return std::size_t{action.stage} * schedule_.microbatches + action.microbatch;
  }
  std::uint32_t note_of(const Action& action) const {
    return notes_[static_cast<std::size_t>(action.kind)][place(action)];
  }
  bool has(const Action& action) const { return note_of(action) != nowhere; }
  void report_at(const Action& action, std::string message) {
    report(schedule_.rank_of[action.stage], note_of(action) - 1, std::move(message));
  }
  void report(std::size_t rank, std::size_t cell, std::string message) {
    problems_.push_back({rank, cell, std::move(message)});
  }

  const Schedule& schedule_;
  std::array<std::vector<std::uint32_t>, 4> notes_;  // by kind, then stage and micro-batch
  std::vector<ScheduleProblem> problems_;
};

}  // namespace

std::vector<ScheduleProblem> schedule_problems(const Schedule& schedule) {
  return ScheduleCheck(schedule).run();
}

void check_schedule(const Schedule& schedule) {
  std::vector<Problem> problems;
  for (const ScheduleProblem& problem : schedule_problems(schedule))
    problems.push_back({{}, fmt::format("schedule: {}", problem.message)});
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace rehearse
