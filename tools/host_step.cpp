// From a scenario to ops on ranks, and back.
#include "tools/host_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/error.hpp"
#include "sim/shaped_roofline.hpp"
#include "strategies/expand.hpp"

namespace rehearse {

HostStep host_step(const LoadedScenario& loaded, StepPredictor& predictor, Routing& routing,
                   HostCompute compute) {
  HostStep step;
  if (compute == HostCompute::calls) {
    step.bound = bound_step_of(loaded.scenario, loaded.workload, loaded.topology, ShapedRoofline{},
                               TrainingNumbers{});
    step.whole = step.bound->step;
  } else {
    step.whole = predictor.whole_program(loaded.scenario, loaded.workload);
  }
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

namespace {

/// The numbers of a real training, in the memory of its ranks that are here.
class Numbers {
 public:
  Numbers(const BoundStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
          HostMemory& memory)
      : step_{step}, loaded_{loaded}, ranks_{ranks} {
    // What no transfer and no kernel touches is somebody's input all the same.
    for (const Feed& feed : step.feeds) memory.cover(feed.rank, feed.slice);
    for (const ParameterPart& part : step.copies) memory.cover(part.rank, part.slice);
    for (const auto& [rank, slice] : step.persistent) memory.cover(rank, slice);
    for (const auto& [rank, slice] : step.states) memory.cover(rank, slice);
    for (const BoundStep::LossSlot& slot : step.losses) memory.cover(slot.rank, slot.slice);
    memory_ = [&](Rank rank, const Slice& slice) {
      return ranks.is_here(rank) ? memory.at(rank, slice) : std::span<std::byte>{};
    };
    fill_parameters(step_, numbers_, memory_);
  }

  void before(std::uint64_t run) {
    fill_batch(step_, loaded_.workload, numbers_, run * step_.steps, memory_);
  }

  /// The mean loss of the training steps that just ran; each process knows its ranks' share.
  double loss() const {
    const std::vector<double> mine = read_losses(step_, memory_);
    const double share = std::accumulate(mine.begin(), mine.end(), 0.0);
    double sum = 0;
    for (const std::string& text : ranks_.gather(fmt::format("{}", share))) sum += std::stod(text);
    return sum / static_cast<double>(step_.steps);
  }

 private:
  const BoundStep& step_;
  const LoadedScenario& loaded_;
  const HostRanks& ranks_;
  TrainingNumbers numbers_;
  RankMemory memory_;
};

}  // namespace

HostSteps run_steps(const HostStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
                    const HostStepOptions& options) {
  HostOptions how{.compute = options.compute, .stop = options.stop};
  if (options.compute == HostCompute::paced)
    how.pace = modelled_pace(step.program, loaded.topology, ShapedRoofline{});
  HostMemory memory = ranks.memory(step.program);
  std::optional<Numbers> numbers;
  if (step.bound) numbers.emplace(*step.bound, loaded, ranks, memory);
  const auto executor = ranks.executor(step.program, memory, std::move(how));
  HostSteps done;
  std::vector<Time> times;
  for (std::size_t i = 0; i <= options.steps; ++i) {
    if (numbers) numbers->before(i);
    Timeline timeline = executor->run(step.program);
    if (i == 0) continue;  // touches the memory, wakes the caches
    if (numbers) done.losses.push_back(numbers->loss());
    times.push_back(timeline.makespan);
    done.timelines.push_back(std::move(timeline));
  }
  done.median = median_of(times);
  done.spread = spread_of(times);
  return done;
}

}  // namespace rehearse
