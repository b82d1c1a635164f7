// Only + - * / and sqrt: the same bits on every machine.
#include "strategies/lowering/step_pricing.hpp"

#include <algorithm>
#include <cmath>

#include "sim/scenario/framework.hpp"
#include "strategies/layers/optimizer.hpp"
#include "strategies/plan/stage_pricing.hpp"

namespace rehearse {

namespace {

Time launch_of(const Training& training) {
  if (training.cuda_graph) return {};
  return training.launch_time > Time{} ? training.launch_time
                                       : frameworks()[training.framework].launch;
}

Time alone(const GroupFamily::Use& use) {
  Time longest;
  for (const GroupFamily::Use::Entry& entry : use.entries)
    longest = std::max(longest, entry.cost.time);
  return longest;
}

struct Stretch {
  Time device;                // all of it, exchanges with what they do not hide
  std::int64_t kernels = 0;   // launches of them
  std::int64_t launches = 0;  // and of exchanges
};

Stretch stretch_of(const Tape& tape, const StepPlan& plan, StepNetwork& network) {
  Stretch stretch;
  for (std::size_t i = 0; i < tape.steps.size(); ++i) {
    const TapeStep& step = tape.steps[i];
    stretch.launches += plan.pieces[step.piece].launches;
    if (std::holds_alternative<Compute>(plan.pieces[step.piece].work)) {
      stretch.kernels += plan.pieces[step.piece].launches;
      stretch.device += step.time;
      continue;
    }
    Time left = alone(network.use(plan.uses[step.use]));
    for (std::size_t k = 1; k <= step.beside; ++k)
      left = left - std::min(left, tape.steps[i + k].time);
    stretch.device += left;
  }
  return stretch;
}

void spread_launches(Tape& tape, const StepPlan& plan, const Stretch& stretch, Time launch,
                     bool blocking) {
  if (stretch.kernels == 0) return;
  const double host = (stretch.launches * launch).seconds().count();
  const double device = stretch.device.seconds().count();
  const double longer = std::max(host, device);
  if (!(longer > 0)) return;
  const double a = host / longer, b = device / longer;
  const double beside = longer * std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
  const double together = blocking ? host + device : beside;
  const Time each =
      Time::round(Seconds{(together - device) / static_cast<double>(stretch.kernels)});
  for (TapeStep& step : tape.steps) {
    if (!std::holds_alternative<Compute>(plan.pieces[step.piece].work)) continue;
    step.time += plan.pieces[step.piece].launches * each;
    step.extra += plan.pieces[step.piece].launches * each;
  }
}

}  // namespace

void charge_framework_overhead(StepPlan& plan, StepNetwork& network) {
  const Training& training = plan.scenario.training;
  const double share = training.exchange_share > 0
                           ? training.exchange_share
                           : frameworks()[training.framework].exchange_share;
  const bool sums_whole = frameworks()[training.framework].sums_whole_gradients &&
                          plan.scenario.parallelism.zero_stage == 1;
  plan.added.clear();
  if (share >= 1 && !sums_whole) return;
  const std::int64_t wider = 4 / state_format(training).gradient.count();
  for (std::size_t i = 0; i < plan.uses.size(); ++i) {
    const CollectiveUse use = plan.uses[i];
    Time& added = plan.added.emplace_back();
    if (dimension_of(use.family) != Dimension::data) continue;
    const double planned = alone(network.use(use)).seconds().count();
    double time = planned;
    if (sums_whole && use.kind == CollectiveKind::reduce_scatter)
      time = alone(network.use({use.family, CollectiveKind::all_reduce, wider * use.size}))
                 .seconds()
                 .count();
    added = Time::round(Seconds{std::max(0.0, time / share - planned)});
  }
}

Time launches_of_update(const StepPlan& plan, std::uint32_t pipeline_rank) {
  const Training& training = plan.scenario.training;
  const Framework& framework = frameworks()[training.framework];
  if (!framework.awaits_sums || plan.size(Family::replicas) == 1) return {};
  const bool is_wide =
      training.precision == Precision::fp32 || training.precision == Precision::tf32;
  std::int64_t tensors = 0;
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
    if (plan.schedule.rank_of[s] == pipeline_rank)
      for (const std::uint32_t kind : plan.work(s).layers)
        tensors += plan.layers.kinds()[kind].tensors;
  const std::int64_t each =
      is_wide ? framework.update_operators : framework.update_operators_in_16_bits;
  return each * tensors * launch_of(training);
}

void charge_host_launches(StepPlan& plan, StepNetwork& network) {
  const Time launch = launch_of(plan.scenario.training);
  if (launch == Time{}) return;
  const bool blocking = plan.scenario.training.launch_blocking;
  for (StageWork& work : plan.works)
    for (Tape* tape : tapes_of(work))
      spread_launches(*tape, plan, stretch_of(*tape, plan, network), launch, blocking);
}

}  // namespace rehearse
