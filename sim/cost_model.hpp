// Cost models of compute. Roofline is the first one, and the one to beat.
#pragma once

#include "sim/executor.hpp"

namespace rehearse {

/// max(math at the best peak, HBM traffic at full bandwidth). No calibration stands behind it.
class Roofline final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator& device) const override;
};

/// What the clock shows for a compute op: the model's time, rounded, plus the op's fixed part.
Time duration_of(const Compute& work, const Accelerator& device, const CostModel& cost);

}  // namespace rehearse
