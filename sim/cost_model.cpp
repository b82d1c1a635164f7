// The roofline of Williams, Waterman and Patterson (2009): bound by math or by memory traffic.
#include "sim/cost_model.hpp"

#include <algorithm>

namespace rehearse {

Seconds Roofline::compute(const Compute& work, const Accelerator& device) const {
  FlopsPerSecond peak{0};
  for (const Accelerator::Peak& p : device.peaks) peak = std::max(peak, p.rate);
  Seconds time{0};
  if (work.flops.count() > 0) {
    ASSERT(peak.count() > 0);
    time = std::max(time, work.flops / peak);
  }
  if (work.traffic.count() > 0) {
    ASSERT(device.memory_bandwidth.count() > 0);
    time = std::max(time, work.traffic / device.memory_bandwidth);
  }
  return time;
}

Time duration_of(const Compute& work, const Accelerator& device, const CostModel& cost) {
  return work.fixed + Time::round(cost.compute(work, device));
}

}  // namespace rehearse
