// Longest paths by relaxing every edge until nothing changes (Bellman and Ford).
#include "tests/support/max_plus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace rehearse {

namespace {

using enum ActionKind;

// Every pair of actions of which the second waits for the first.
std::vector<std::pair<Action, Action>> edges_of(const Schedule& schedule,
                                                const std::map<Action, std::int64_t>& actions) {
  std::vector<std::pair<Action, Action>> edges;
  for (const ScheduleRow& row : schedule.ranks) {
    std::optional<Action> before;
    for (const std::optional<Action>& cell : row) {
      if (!cell) continue;
      if (before) edges.emplace_back(*before, *cell);
      before = cell;
    }
  }
  for (const auto& [action, begin] : actions) {
    const auto [stage, kind, i] = action;
    std::vector<Action> inputs;
    if (kind == forward) {
      inputs = {{stage - 1, forward, i}};
    } else if (kind == backward_weight) {
      inputs = {{stage, backward_input, i}};
    } else {
      inputs = {{stage, forward, i}, {stage + 1, backward, i}, {stage + 1, backward_input, i}};
    }
    for (const Action& input : inputs)
      if (actions.count(input)) edges.emplace_back(input, action);
  }
  return edges;
}

}  // namespace

Evaluation evaluate(const Schedule& schedule, const StageTimes& times) {
  Evaluation result;
  for (const ScheduleRow& row : schedule.ranks)
    for (const std::optional<Action>& cell : row)
      if (cell) result.begin[*cell] = 0;
  const auto edges = edges_of(schedule, result.begin);
  bool grows = true;
  for (std::size_t round = 0; grows && round <= result.begin.size(); ++round) {
    grows = false;
    for (const auto& [first, second] : edges) {
      const std::int64_t end = result.begin[first] + times.of(first.kind);
      if (result.begin[second] < end) result.begin[second] = end, grows = true;
    }
  }
  if (grows) ADD_FAILURE() << "the actions wait for each other in a circle";
  for (const ScheduleRow& row : schedule.ranks) {
    std::int64_t first = -1, last = 0, busy = 0, kept = 0, most = 0;
    for (const std::optional<Action>& cell : row) {
      if (!cell) continue;
      const std::int64_t begin = result.begin[*cell];
      if (first < 0) first = begin;
      last = begin + times.of(cell->kind);
      busy += times.of(cell->kind);
      if (cell->kind == forward) most = std::max(most, ++kept);
      if (cell->kind == backward || cell->kind == backward_weight) --kept;
    }
    result.first.push_back(first);
    result.last.push_back(last);
    result.busy.push_back(busy);
    result.in_flight.push_back(most);
    result.makespan = std::max(result.makespan, last);
  }
  return result;
}

}  // namespace rehearse
