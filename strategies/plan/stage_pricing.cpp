// Only + - * / and sqrt: the same bits on every machine.
#include "strategies/plan/stage_pricing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/engine/cost_model.hpp"

namespace rehearse {

namespace {

bool is_math(const Compute& work) {
  return work.flops.count() > 0 && work.math && *work.math != Precision::fp32;
}

// What of a kernel's time is neither its launch nor waiting for memory; 0 when that is longer.
Time math_time(const TapeStep& step, const Compute& work, const Accelerator& device) {
  const Time busy = step.time - std::min(step.time, device.launch_overhead);
  const double rate = device.memory_bandwidth.count() * device.memory_efficiency;
  if (rate <= 0) return busy;
  const auto bytes = static_cast<double>((work.traffic + device.memory_ramp).count());
  return busy > Time::round(Seconds{bytes / rate}) ? busy : Time{};
}

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

std::array<Tape*, 4> tapes_of(StageWork& work) {
  return {&work.forward, &work.backward, &work.backward_input, &work.backward_weight};
}

std::array<const Tape*, 4> tapes_of(const StageWork& work) {
  return {&work.forward, &work.backward, &work.backward_input, &work.backward_weight};
}

void slow_sweeps(StageWork& work, const PieceList& pieces, const Accelerator& device) {
  for (Tape* tape : tapes_of(work))
    for (TapeStep& step : tape->steps) {
      const auto* kernel = std::get_if<Compute>(&pieces[step.piece].work);
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

void slow_clocks(StageWork& work, const PieceList& pieces, const Accelerator& device) {
  if (device.sustained_share >= 1) return;
  double at_peak = 0, in_all = 0;
  for (const Tape* tape : {&work.forward, &work.backward})
    for (const TapeStep& step : tape->steps) {
      in_all += step.time.seconds().count();
      const auto* kernel = std::get_if<Compute>(&pieces[step.piece].work);
      if (kernel != nullptr && is_math(*kernel))
        at_peak += (kernel->flops / peak_for(kernel->math, device).rate).count();
    }
  const double allowed = device.sustained_share * in_all;
  if (at_peak <= allowed) return;
  const double slower = std::sqrt(std::sqrt(at_peak / allowed));
  for (Tape* tape : tapes_of(work))
    for (TapeStep& step : tape->steps) {
      const auto* kernel = std::get_if<Compute>(&pieces[step.piece].work);
      if (kernel == nullptr || !is_math(*kernel)) continue;
      const Time math = math_time(step, *kernel, device);
      const Time more = Time::round(Seconds{math.seconds().count() * (slower - 1)});
      step.time += more;
      step.extra += more;
    }
}

void charge_slowest_replica(StageWork& work, const PieceList& pieces, std::size_t replicas,
                            double spread) {
  const double more = spread * largest_draw(replicas);
  if (!(more > 0)) return;
  for (Tape* tape : tapes_of(work))
    for (TapeStep& step : tape->steps) {
      if (!std::holds_alternative<Compute>(pieces[step.piece].work)) continue;
      const Time waited = Time::round(Seconds{step.time.seconds().count() * more});
      step.time += waited;
      step.extra += waited;
    }
}

}  // namespace rehearse
