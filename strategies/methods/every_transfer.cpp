// Both programs are made by the same calls of the emitter, so the n-th op of a rank's stream in the
// one is the n-th in the other.
#include "strategies/methods/every_transfer.hpp"

#include <algorithm>
#include <map>

namespace rehearse {

namespace {

constexpr std::size_t most_kernels = 60'000;

using Row = std::pair<Rank, Stream>;

/// Ranks on whose stream an op takes a turn: all of a collective, or the one it is on.
std::vector<Rank> takers(const Program& program, const Program::Op& op) {
  if (op.kind == WorkKind::collective) return program.collective(op).group;
  if (op.kind == WorkKind::transfer) {
    const Connection& way = program[program.transfer(op).connection];
    if (!way.others.empty()) return way.others;
  }
  return {op.rank};
}

/// By rank and stream: its ops in their order.
std::map<Row, std::vector<OpId>> turns_of(const Program& program) {
  std::map<Row, std::vector<OpId>> turns;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    for (const Rank rank : takers(program, program[id]))
      turns[{rank, program[id].stream}].push_back(id);
  }
  return turns;
}

/// When each op of the whole program happened, and what it lost on which link at most.
struct Happened {
  Time begin, end;
  bool has_begun = false;
  Time lost;
  LinkId link = no_link;
};

// Ranks that are early send what they have, and then wait for the others: that is no communication
// yet. A collective begins when all its ranks are there, as one that is a single flow does.
void begin_when_all_are_there(const Program& program, std::vector<Happened>& all) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    if (program[id].kind != WorkKind::collective) continue;
    Happened& op = all[i];
    for (const OpId input : program.after(id)) op.begin = std::max(op.begin, all[index(input)].end);
    op.begin = std::min(op.begin, op.end);
  }
}

std::vector<Happened> happened(const WholeStep& whole, const Timeline& run) {
  std::vector<Happened> all(whole.step.program.size());
  for (std::size_t i = 0; i < run.spans.size(); ++i) {
    Happened& op = all[index(whole.expanded.origin[i])];
    const Timeline::Span& span = run.spans[i];
    op.begin = op.has_begun ? std::min(op.begin, span.begin) : span.begin;
    op.end = std::max(op.end, span.end);
    op.has_begun = true;
  }
  for (const Timeline::Contention& contention : run.contentions) {
    Happened& op = all[index(whole.expanded.origin[index(contention.op)])];
    if (contention.lost <= op.lost) continue;
    op.lost = contention.lost;
    op.link = contention.link;
  }
  begin_when_all_are_there(whole.step.program, all);
  return all;
}

}  // namespace

bool is_small(const StepPlan& plan) {
  const Schedule& schedule = plan.schedule;
  std::size_t kernels = 0;
  for (std::uint32_t s = 0; s < schedule.stages; ++s)
    kernels += plan.work(s).forward.steps.size() + plan.work(s).backward.steps.size();
  const std::size_t copies = plan.placement.world() / schedule.ranks.size();
  return copies * kernels * plan.batch.microbatches <= most_kernels;
}

std::optional<WholeStep> expand_step(StepProgram step, Routing& routing, std::size_t most_ops) {
  std::optional<Expanded> expanded = expand_within(step.program, routing, most_ops);
  if (!expanded) return std::nullopt;
  return WholeStep{std::move(step), std::move(*expanded)};
}

Timeline seen_from(const StepProgram& step, const WholeStep& whole, const Timeline& run) {
  const std::map<Row, std::vector<OpId>> turns = turns_of(whole.step.program);
  const std::vector<Happened> all = happened(whole, run);
  Timeline seen;
  seen.makespan = run.makespan;
  seen.events = run.events;
  std::map<Row, std::size_t> turn;
  std::map<Row, OpId> before;
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = step.program[id];
    const Row row{op.rank, op.stream};
    const OpId there = turns.at(row).at(turn[row]);
    ASSERT(step.tags[i].phase == whole.step.tags[index(there)].phase);
    for (const Rank rank : takers(step.program, op)) ++turn[{rank, op.stream}];
    const Happened& what = all[index(there)];
    ASSERT(what.has_begun);

    // What it waited for is what ended last of all that it names, or the op before it.
    const auto last = before.find(row);
    OpId blocker = last == before.end() ? no_op : last->second;
    for (const OpId input : step.program.after(id))
      if (blocker == no_op || seen.spans[index(input)].end > seen.spans[index(blocker)].end)
        blocker = input;
    before[row] = id;
    seen.spans.push_back({what.begin, what.end, blocker});
    if (what.lost > Time{}) seen.contentions.push_back({id, what.lost, what.link});
  }
  return seen;
}

}  // namespace rehearse
