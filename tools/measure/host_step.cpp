// From a scenario to ops on ranks, and back.
#include "tools/measure/host_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/base/told_elsewhere.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/binding/bind_servers.hpp"
#include "strategies/collectives/expand.hpp"
#include "strategies/methods/local_sgd.hpp"
#include "tools/measure/host_training.hpp"

namespace rehearse {

namespace {

// All steps of all workers are one program.
void add_servers(const LoadedScenario& loaded, Routing& routing, HostCompute compute,
                 HostStep& step) {
  step.steps_each = static_cast<std::uint32_t>(loaded.scenario.parameter_server.steps);
  if (compute == HostCompute::calls) {
    BoundServers bound = bound_servers_of(loaded.scenario, loaded.workload, loaded.topology,
                                          ShapedRoofline{}, step.numbers);
    step.whole = bound.bound.step;
    step.bound = std::move(bound.bound);
    step.servers = {std::move(bound.plan), std::move(bound.lowered)};
    return;
  }
  ServerPlan plan =
      plan_servers(loaded.scenario, loaded.workload, loaded.topology, ShapedRoofline{});
  ServerProgram lowered = lower_servers(plan, routing, false, true);
  step.whole = step_of_servers(lowered.program, lowered);
  step.servers = {std::move(plan), std::move(lowered)};
}

}  // namespace

HostStep host_step(const LoadedScenario& loaded, HostCompute compute,
                   const TrainingNumbers& numbers, bool by_library) {
  Routing routing{loaded.topology};
  HostStep step{.numbers = numbers};
  step.steps_each = static_cast<std::uint32_t>(simulated_steps(loaded.scenario));
  if (loaded.scenario.parameter_server.servers > 0) {
    add_servers(loaded, routing, compute, step);
  } else if (compute == HostCompute::calls) {
    step.bound = bound_step_of(loaded.scenario, loaded.workload, loaded.topology, ShapedRoofline{},
                               step.numbers);
    step.whole = step.bound->step;
  } else {
    const ShapedRoofline cost;
    step.whole =
        StepPredictor{loaded.topology, cost}.whole_program(loaded.scenario, loaded.workload);
  }
  constexpr std::size_t most = 2'000'000;
  std::optional<Expanded> expanded = by_library ? split_collectives(step.whole.program, routing)
                                                : expand_within(step.whole.program, routing, most);
  if (!expanded)
    throw InputError(fmt::format(
        "a real run has every op of every rank, more than {} of them here: take fewer ranks, "
        "layers or micro-batches",
        most));
  step.program = std::move(expanded->program);
  step.origin = std::move(expanded->origin);
  step.parts = std::move(expanded->parts);
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

/// What was asked for beside the steps themselves, once a run of the program is over.
class Keeper {
 public:
  Keeper(const HostTraining& training, const HostRanks& ranks, const HostStepOptions& options,
         std::uint32_t steps_each)
      : training_{training}, ranks_{ranks}, options_{options}, each_{steps_each} {}

  void after(std::size_t run, std::uint64_t steps_done, bool stops) const {
    if (options_.checkpoint.empty()) return;
    const bool is_last = run + 1 == options_.steps;
    const bool is_due =
        options_.checkpoint_every > 0 &&
        steps_done / options_.checkpoint_every != (steps_done - each_) / options_.checkpoint_every;
    if (is_last || is_due || stops) training_.save(options_.checkpoint, steps_done);
    if (!stops || is_last) return;
    ranks_.finish();  // a process that ends takes the others with it: not before all is written
    if (!ranks_.is_first()) throw ToldElsewhere();
    throw DeviceError(fmt::format("stopped after step {}; go on with --resume {}", steps_done,
                                  options_.checkpoint));
  }

 private:
  const HostTraining& training_;
  const HostRanks& ranks_;
  const HostStepOptions& options_;
  std::uint32_t each_;
};

}  // namespace

std::function<bool()> stop_within_step(const HostStepOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (!options.stop) return [] { return false; };
  if (options.checkpoint.empty()) return options.stop;
  const auto since = std::make_shared<std::optional<Clock::time_point>>();
  return [stop = options.stop, since] {
    if (!stop()) return false;
    if (!*since) *since = Clock::now();
    return Clock::now() - **since > std::chrono::seconds(4);
  };
}

HostSteps run_steps(const HostStep& step, const HostRanks& ranks, const HostStepOptions& options,
                    Executor& executor, HostTraining* training) {
  HostSteps done;
  if (training != nullptr) done.first = training->begin(options.resume);
  // Touches the memory, wakes the caches; what it has trained is forgotten.
  const std::string kept = training != nullptr ? training->kept() : "";
  if (training != nullptr) training->fill_batch(done.first);
  executor.run(step.program);
  if (training != nullptr) training->put_back(kept);
  std::vector<Time> times;
  for (std::size_t i = 0; i < options.steps; ++i) {
    if (options.before) options.before(i);
    const std::uint64_t each = training != nullptr ? step.bound->steps : 1;
    if (training != nullptr) training->fill_batch(done.first + i * each);
    Timeline timeline = executor.run(step.program);
    times.push_back(timeline.makespan);
    done.timelines.push_back(std::move(timeline));
    if (training == nullptr) continue;
    const HostTraining::Told told = training->tell(options.stop && options.stop());
    done.losses.insert(done.losses.end(), told.losses.begin(), told.losses.end());
    if (told.scaled) done.scaled.push_back(*told.scaled);
    Keeper(*training, ranks, options, step.bound->steps)
        .after(i, done.first + (i + 1) * each, told.stops);
  }
  done.median = median_of(times);
  done.spread = spread_of(times);
  return done;
}

HostSteps run_steps(const HostStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
                    const HostStepOptions& options) {
  HostOptions how{
      .compute = options.compute, .parts = step.parts, .stop = stop_within_step(options)};
  if (options.compute == HostCompute::paced)
    how.pace = modelled_pace(step.program, loaded.topology, ShapedRoofline{});
  HostMemory memory = ranks.memory(step.program);
  std::optional<HostTraining> training;
  if (step.bound)
    training.emplace(*step.bound, loaded.workload, step.numbers, ranks,
                     memory_of_training(*step.bound, ranks, memory), [] {});
  const auto executor = ranks.executor(step.program, memory, std::move(how));
  return run_steps(step, ranks, options, *executor, training ? &*training : nullptr);
}

}  // namespace rehearse
