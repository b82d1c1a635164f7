// The roofline of Williams, Waterman and Patterson (2009): bound by math or by memory traffic.
#include "sim/engine/cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

const Accelerator::Peak* find_peak(Precision precision, const Accelerator& device) {
  for (const Accelerator::Peak& peak : device.peaks)
    if (peak.precision == to_string(precision)) return &peak;
  return nullptr;
}

// fp16 and bf16 run on the same units where there are any; without them in fp32.
std::initializer_list<Precision> wider(Precision precision) {
  using enum Precision;
  static constexpr std::initializer_list<Precision> from_fp8{bf16, fp16, tf32, fp32},
      from_fp16{bf16, tf32, fp32}, from_bf16{fp16, tf32, fp32}, from_tf32{fp32}, from_fp32{};
  switch (precision) {
    case fp8:
      return from_fp8;
    case fp16:
      return from_fp16;
    case bf16:
      return from_bf16;
    case tf32:
      return from_tf32;
    case int8:
    case fp32:
      break;
  }
  return from_fp32;
}

bool is_slower(const Accelerator::Peak& a, const Accelerator::Peak& b) { return a.rate < b.rate; }

}  // namespace

const Accelerator::Peak& peak_for(std::optional<Precision> math, const Accelerator& device) {
  if (device.peaks.empty())
    throw InputError(
        fmt::format("'{}' has no peak rate to compute with: [accelerator.peak] of its "
                    "cluster file says it",
                    device.name));
  if (!math) return *std::max_element(device.peaks.begin(), device.peaks.end(), is_slower);
  if (const Accelerator::Peak* peak = find_peak(*math, device)) return *peak;
  for (const Precision precision : wider(*math))
    if (const Accelerator::Peak* peak = find_peak(precision, device)) return *peak;
  return *std::min_element(device.peaks.begin(), device.peaks.end(), is_slower);
}

Seconds Roofline::compute(const Compute& work, const Accelerator& device) const {
  Seconds time{0};
  if (work.flops.count() > 0) {
    const FlopsPerSecond peak = peak_for(work.math, device).rate;
    ASSERT(peak.count() > 0);
    time = std::max(time, work.flops / peak);
  }
  if (work.traffic.count() > 0) {
    if (device.memory_bandwidth.count() <= 0)
      throw InputError(
          fmt::format("'{}' has no memory_bandwidth: [accelerator] of its cluster "
                      "file says it",
                      device.name));
    time = std::max(time, work.traffic / device.memory_bandwidth);
  }
  return time;
}

Time duration_of(const Compute& work, const Accelerator& device, const CostModel& cost) {
  const Seconds seconds = cost.compute(work, device);
  if (!(seconds.count() < 9e6))  // a hundred days
    throw InputError(
        fmt::format("a kernel of {} floating-point operations and {} bytes takes {:g} s "
                    "on '{}': longer than the clock can show",
                    work.flops.count(), work.traffic.count(), seconds.count(), device.name));
  return work.fixed + Time::round(seconds);
}

FlopsPerSecond peak_of(const Accelerator& device, Precision precision) {
  FlopsPerSecond best{};
  for (const Accelerator::Peak& peak : device.peaks) {
    if (peak.precision == to_string(precision)) return peak.rate;
    best = std::max(best, peak.rate);
  }
  return best;
}

}  // namespace rehearse
