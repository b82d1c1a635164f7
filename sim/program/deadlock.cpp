// Cycles of waiting: an op waits for its `after` ops and for the op before it on its stream. On a
// queue nobody is before anybody: whoever is ready goes, so a queue is never part of a cycle.
#include "sim/program/deadlock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/program/stream_table.hpp"

namespace rehearse {

namespace {

struct Step {
  OpId op{};
  bool by_stream = false;  // how the op before it in the cycle waits for it
};

/// The unfinished ops that an unfinished op waits for.
class WaitGraph {
 public:
  WaitGraph(const Program& program, const std::vector<bool>& finished)
      : program_{program}, finished_{finished}, before_(program.size()) {
    const StreamTable streams{program};
    std::vector<OpId> last(streams.size(), no_op);
    for (std::size_t i = 0; i < program.size(); ++i) {
      const Program::Op& op = program.ops()[i];
      const auto id = static_cast<OpId>(i);
      if (is_queue(op.stream)) continue;
      for (const Rank rank : ranks_of(program, op)) {
        const OpId before = std::exchange(last[streams.number(rank, op.stream)], id);
        if (before != no_op && before != id) before_[i].push_back(before);
      }
    }
  }

  std::vector<Step> waits_for(OpId id) const {
    std::vector<Step> steps;
    for (const OpId other : program_.after(id))
      if (!finished_[index(other)]) steps.push_back({other, false});
    for (const OpId before : before_[index(id)])
      if (!finished_[index(before)]) steps.push_back({before, true});
    return steps;
  }

 private:
  const Program& program_;
  const std::vector<bool>& finished_;
  std::vector<std::vector<OpId>> before_;  // on the same stream; a collective has one on each rank
};

// Every unfinished op waits for another one, so whoever follows the first wait long enough is on a
// cycle.
OpId some_op_on_a_cycle(const WaitGraph& graph, OpId start, std::size_t ops) {
  OpId at = start;
  for (std::size_t i = 0; i < ops; ++i) {
    const std::vector<Step> steps = graph.waits_for(at);
    ASSERT(!steps.empty());
    at = steps.front().op;
  }
  return at;
}

// Breadth first from `start` back to `start`: the shortest cycle through it, or an empty one.
std::vector<Step> shortest_cycle_through(const WaitGraph& graph, OpId start, std::size_t ops) {
  std::vector<Step> came_from(ops, Step{no_op, false});
  std::vector<OpId> queue{start};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Step step : graph.waits_for(queue[i])) {
      if (came_from[index(step.op)].op != no_op) continue;
      came_from[index(step.op)] = {queue[i], step.by_stream};
      if (step.op != start) {
        queue.push_back(step.op);
        continue;
      }
      std::vector<Step> cycle;
      OpId at = start;
      do {
        const Step back = came_from[index(at)];
        cycle.push_back({at, back.by_stream});
        at = back.op;
      } while (at != start);
      std::reverse(cycle.begin(), cycle.end());
      return cycle;
    }
  }
  return {};
}

std::string describe_cycle(const Program& program, const std::vector<Step>& cycle) {
  constexpr std::size_t most = 8;
  const auto how = [](const Step& step) { return step.by_stream ? "stream" : "edge"; };
  const OpId first = cycle.back().op;  // the cycle begins with what `first` waits for
  std::string text = "cannot finish: " + program.describe(first);
  for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
    if (i + 1 == most) {
      text += fmt::format(" … and {} more …", cycle.size() - most);
      break;
    }
    text += fmt::format(" waits for {} ({})", program.describe(cycle[i].op), how(cycle[i]));
  }
  return text + fmt::format(" waits for op {} ({})", index(first), how(cycle.back()));
}

}  // namespace

std::string waiting_cycle(const Program& program, const std::vector<bool>& finished) {
  const auto unfinished = std::find(finished.begin(), finished.end(), false);
  ASSERT(finished.size() == program.size() && unfinished != finished.end());
  const auto start = static_cast<OpId>(unfinished - finished.begin());
  const WaitGraph graph{program, finished};
  const OpId found = some_op_on_a_cycle(graph, start, program.size());
  std::vector<Step> cycle = shortest_cycle_through(graph, found, program.size());
  // A neighbour on the cycle may know a shorter one; more than a few are not worth the search.
  constexpr std::size_t tries = 16;
  const std::vector<Step> others = cycle;
  for (std::size_t i = 0; i < std::min(tries, others.size()); ++i) {
    std::vector<Step> shorter = shortest_cycle_through(graph, others[i].op, program.size());
    if (shorter.size() < cycle.size()) cycle = std::move(shorter);
  }
  // Tell it from its lowest op on, so that the message does not depend on where the search began.
  const auto lowest = std::min_element(cycle.begin(), cycle.end(),
                                       [](const Step& a, const Step& b) { return a.op < b.op; });
  std::rotate(cycle.begin(), lowest + 1, cycle.end());
  return describe_cycle(program, cycle);
}

}  // namespace rehearse
