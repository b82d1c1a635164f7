// Sums over the ops of a step.
#include "tools/predict/step_breakdown.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace rehearse {

namespace {

constexpr std::size_t phase_count = static_cast<std::size_t>(Phase::hand_over) + 1;

// The two halves of a zero-bubble backward pass are one backward pass to a reader of shares.
Phase merged(Phase phase) {
  return phase == Phase::backward_input || phase == Phase::backward_weight ? Phase::backward
                                                                           : phase;
}

bool takes_part(const Program& program, const Program::Op& op, Rank rank) {
  if (op.rank == rank) return true;
  if (op.kind != WorkKind::transfer) return false;
  const std::vector<Rank>& others = program[program.transfer(op).connection].others;
  return std::find(others.begin(), others.end(), rank) != others.end();
}

}  // namespace

std::vector<BreakdownPart> breakdown(const Prediction& prediction, const StepProgram& step,
                                     const Timeline& timeline) {
  // How many ranks each simulated one stands for; a rank plays in one role only.
  std::map<Rank, double> weight;
  double ranks = 0;
  for (const Role& role : step.roles) weight[role.rank] = role.ranks, ranks += role.ranks;
  // A run of several steps is told as one of them in the mean.
  const double steps =
      std::round(timeline.makespan.seconds().count() / prediction.step.seconds().count());
  std::array<double, phase_count> seconds{};
  for (std::size_t i = 0; i < step.tags.size(); ++i) {
    if (step.tags[i].communicates) continue;
    const Timeline::Span& span = timeline.spans[i];
    seconds[static_cast<std::size_t>(merged(step.tags[i].phase))] +=
        (span.end - span.begin).seconds().count() * weight[step.program.ops()[i].rank] / ranks /
        steps;
  }
  std::vector<BreakdownPart> parts;
  for (std::size_t p = 0; p < phase_count; ++p)
    if (seconds[p] > 0)
      parts.push_back({std::string{to_string(static_cast<Phase>(p))}, Seconds{seconds[p]}});
  for (std::size_t d = 0; d < dimension_count; ++d)
    if (prediction.mean.exposed[d] > Time{})
      parts.push_back({"exposed " + std::string{to_string(static_cast<Dimension>(d))},
                       prediction.mean.exposed[d].seconds()});
  if (prediction.mean.bubble > Time{})
    parts.push_back({"bubble", prediction.mean.bubble.seconds()});
  return parts;
}

std::vector<KernelTime> kernel_times(const StepProgram& step, const Timeline& timeline,
                                     const Role& role) {
  std::vector<KernelTime> by_name(step.program.names().size());
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const Program::Op& op = step.program.ops()[i];
    if (op.kind == WorkKind::marker || !takes_part(step.program, op, role.rank)) continue;
    KernelTime& kernel = by_name[op.label.name];
    ++kernel.calls;
    kernel.time += timeline.spans[i].end - timeline.spans[i].begin;
  }
  for (std::size_t n = 0; n < by_name.size(); ++n) by_name[n].name = step.program.names()[n];
  std::erase_if(by_name, [](const KernelTime& kernel) { return kernel.calls == 0; });
  std::stable_sort(by_name.begin(), by_name.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.time > b.time; });
  return by_name;
}

}  // namespace rehearse
