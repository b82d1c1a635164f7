// From a scenario to ops on ranks, and back.
#include "tools/host_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/error.hpp"
#include "sim/shaped_roofline.hpp"
#include "strategies/expand.hpp"

namespace rehearse {

HostStep host_step(const LoadedScenario& loaded, StepPredictor& predictor, Routing& routing) {
  HostStep step;
  step.whole = predictor.whole_program(loaded.scenario, loaded.workload);
  constexpr std::size_t most = 2'000'000;
  std::optional<Expanded> expanded = expand_within(
      step.whole.program, routing, {.algorithm = loaded.scenario.collectives.all_reduce}, most);
  if (!expanded)
    throw InputError(fmt::format(
        "a real run has every op of every rank, more than {} of them here: take fewer ranks, "
        "layers or micro-batches",
        most));
  step.program = std::move(expanded->program);
  step.origin = std::move(expanded->origin);
  return step;
}

void check_that_it_computes(const HostStep& step) {
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = step.program[id];
    if (op.kind != WorkKind::compute || !step.program.calls(op).empty()) continue;
    throw InputError(fmt::format(
        "{} has no arithmetic to run on this backend; --compute paced waits for its modelled time",
        step.program.describe(id)));
  }
}

Timeline told_of_whole(const HostStep& step, const Timeline& timeline) {
  Timeline told;
  told.spans.resize(step.whole.program.size(), {Time::never(), Time{}, no_op});
  for (std::size_t i = 0; i < step.origin.size(); ++i) {
    const Timeline::Span& part = timeline.spans[i];
    Timeline::Span& whole = told.spans[index(step.origin[i])];
    if (part.begin < whole.begin) {
      whole.begin = part.begin;
      if (part.blocker != no_op) whole.blocker = step.origin[index(part.blocker)];
    }
    whole.end = std::max(whole.end, part.end);
  }
  // A collective of one rank has no transfers: it is over as soon as its inputs are.
  for (std::size_t i = 0; i < told.spans.size(); ++i) {
    Timeline::Span& span = told.spans[i];
    if (span.begin != Time::never()) continue;
    span.begin = Time{};
    for (const OpId input : step.whole.program.after(static_cast<OpId>(i)))
      span.begin = std::max(span.begin, told.spans[index(input)].end);
    span.end = span.begin;
  }
  told.events = timeline.events;
  told.makespan = timeline.makespan;
  return told;
}

std::size_t median_of(const std::vector<Time>& times) {
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  return order[order.size() / 2];
}

double spread_of(const std::vector<Time>& times) {
  const auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
  return (*slowest - *fastest).seconds().count() /
         std::max(times[median_of(times)].seconds().count(), 1e-12);
}

HostSteps run_steps(const HostStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
                    const HostStepOptions& options) {
  HostOptions how{.compute = options.compute, .stop = options.stop};
  if (options.compute == HostCompute::paced)
    how.pace = modelled_pace(step.program, loaded.topology, ShapedRoofline{});
  HostMemory memory = ranks.memory(step.program);
  const auto executor = ranks.executor(step.program, memory, std::move(how));
  executor->run(step.program);
  HostSteps done;
  std::vector<Time> times;
  for (std::size_t i = 0; i < options.steps; ++i) {
    done.timelines.push_back(executor->run(step.program));
    times.push_back(done.timelines.back().makespan);
  }
  done.median = median_of(times);
  done.spread = spread_of(times);
  return done;
}

}  // namespace rehearse
