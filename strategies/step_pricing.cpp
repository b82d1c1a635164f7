// Only + - * / and sqrt: the same bits on every machine.
#include "strategies/step_pricing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/cost_model.hpp"
#include "sim/framework.hpp"
#include "strategies/optimizer.hpp"

namespace rehearse {

namespace {

bool is_math(const Compute& work) {
  return work.flops.count() > 0 && work.math && *work.math != Precision::fp32;
}

std::array<Tape*, 4> tapes_of(StageWork& work) {
  return {&work.forward, &work.backward, &work.backward_input, &work.backward_weight};
}

// What of a kernel's time is neither its launch nor waiting for memory; 0 when that is longer.
Time math_time(const TapeStep& step, const Compute& work, const Accelerator& device) {
  const Time busy = step.time - std::min(step.time, device.launch_overhead);
  const double rate = device.memory_bandwidth.count() * device.memory_efficiency;
  if (rate <= 0) return busy;
  const auto bytes = static_cast<double>((work.traffic + device.memory_ramp).count());
  return busy > Time::round(Seconds{bytes / rate}) ? busy : Time{};
}

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
    stretch.launches += step.piece->launches;
    if (std::holds_alternative<Compute>(step.piece->work)) {
      stretch.kernels += step.piece->launches;
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

void wait(Tape& tape, const Stretch& stretch, Time launch, bool blocking) {
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
    if (!std::holds_alternative<Compute>(step.piece->work)) continue;
    step.time += step.piece->launches * each;
    step.extra += step.piece->launches * each;
  }
}

}  // namespace

void slow_sweeps(StageWork& work, const Accelerator& device) {
  for (Tape* tape : tapes_of(work))
    for (TapeStep& step : tape->steps) {
      const auto* kernel = std::get_if<Compute>(&step.piece->work);
      if (kernel == nullptr || kernel->gemm.m > 0 || is_math(*kernel)) continue;
      const bool is_forward = step.phase == Phase::forward || step.phase == Phase::recompute;
      const double share = is_forward ? device.elementwise_share : device.elementwise_grad_share;
      if (share >= 1) continue;
      const Time busy = step.time - std::min(step.time, device.launch_overhead);
      const Time more = Time::round(Seconds{busy.seconds().count() * (1 / share - 1)});
      step.time += more;
      step.extra += more;
    }
}

void slow_clocks(StageWork& work, const Accelerator& device) {
  if (device.sustained_share >= 1) return;
  double at_peak = 0, in_all = 0;
  for (const Tape* tape : {&work.forward, &work.backward})
    for (const TapeStep& step : tape->steps) {
      in_all += step.time.seconds().count();
      const auto* kernel = std::get_if<Compute>(&step.piece->work);
      if (kernel != nullptr && is_math(*kernel))
        at_peak += (kernel->flops / peak_for(kernel->math, device).rate).count();
    }
  const double allowed = device.sustained_share * in_all;
  if (at_peak <= allowed) return;
  const double slower = std::sqrt(std::sqrt(at_peak / allowed));
  for (Tape* tape : tapes_of(work))
    for (TapeStep& step : tape->steps) {
      const auto* kernel = std::get_if<Compute>(&step.piece->work);
      if (kernel == nullptr || !is_math(*kernel)) continue;
      const Time math = math_time(step, *kernel, device);
      const Time more = Time::round(Seconds{math.seconds().count() * (slower - 1)});
      step.time += more;
      step.extra += more;
    }
}

namespace {

// Of 2^i draws (Harter 1961, table 1; beyond it as 2 ln n tells); in between by the straight line.
double largest_draw(std::size_t draws) {
  constexpr std::array<double, 11> of_powers{0,      0.5642, 1.0294, 1.4236, 1.7660, 2.0697,
                                             2.3437, 2.5946, 2.8265, 3.0434, 3.2487};
  constexpr double more = 0.19;  // for each doubling above
  if (draws < 2) return 0;
  const auto power = static_cast<std::size_t>(std::bit_width(draws) - 1);
  const auto value = [&](std::size_t p) {
    const std::size_t last = of_powers.size() - 1;
    return p <= last ? of_powers[p] : of_powers[last] + more * static_cast<double>(p - last);
  };
  const auto whole = static_cast<double>(std::size_t{1} << power);
  const double part = (static_cast<double>(draws) - whole) / whole;
  return value(power) + part * (value(power + 1) - value(power));
}

}  // namespace

void wait_for_slowest(StageWork& work, std::size_t replicas, double spread) {
  const double more = spread * largest_draw(replicas);
  if (!(more > 0)) return;
  for (Tape* tape : tapes_of(work))
    for (TapeStep& step : tape->steps) {
      if (!std::holds_alternative<Compute>(step.piece->work)) continue;
      const Time waited = Time::round(Seconds{step.time.seconds().count() * more});
      step.time += waited;
      step.extra += waited;
    }
}

void add_to_exchanges(StepPlan& plan, StepNetwork& network) {
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
        tensors += plan.pieces.kinds()[kind].tensors;
  const std::int64_t each =
      is_wide ? framework.update_operators : framework.update_operators_in_16_bits;
  return each * tensors * launch_of(training);
}

void wait_for_host(StepPlan& plan, StepNetwork& network) {
  const Time launch = launch_of(plan.scenario.training);
  if (plan.has_host || launch == Time{}) return;
  plan.has_host = true;
  const bool blocking = plan.scenario.training.launch_blocking;
  for (StageWork& work : plan.works)
    for (Tape* tape : tapes_of(work))
      wait(*tape, stretch_of(*tape, plan, network), launch, blocking);
}

}  // namespace rehearse
