// Cost models of compute: the plain roofline, and what all of them share. ShapedRoofline
// (sim/engine/shaped_roofline.hpp) is the one that predictions use.
#pragma once

#include <optional>

#include "sim/engine/executor.hpp"

namespace rehearse {

/// max(math at the peak, HBM traffic at full bandwidth): what no kernel can beat.
class Roofline final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator& device) const override;
};

/// The peak that bounds math of a precision: its own; else that of the nearest wider format, which
/// libraries fall back to; none asked for: the device's best. InputError where there is no peak.
const Accelerator::Peak& peak_for(std::optional<Precision> math, const Accelerator& device);
/// The device's published peak, against which MFU counts; of a device that does not name the
/// precision, its best.
FlopsPerSecond peak_of(const Accelerator& device, Precision precision);

/// What the clock shows for a compute op: the model's time, rounded, plus the op's fixed part.
Time duration_of(const Compute& work, const Accelerator& device, const CostModel& cost);

}  // namespace rehearse
