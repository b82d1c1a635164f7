// Dynamic loss scaling (Micikevicius et al., ICLR 2018, section 3.2): the loss is multiplied so
// that small gradients survive fp16; a step whose gradients overflow is skipped.
//
//   finite      good_steps + 1; after growth_interval of them in a row scale · growth
//   not finite  the step is skipped, scale · backoff, good_steps = 0
//
// The defaults are those of PyTorch's GradScaler.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/math/number_formats.hpp"

namespace rehearse {

/// False if any number is infinite or NaN.
bool all_finite(std::span<const float> x);
bool all_finite(std::span<const Fp16> x);
bool all_finite(std::span<const Bf16> x);

struct LossScale {
  double scale = 65536;
  double growth = 2, backoff = 0.5;
  double least = 1, largest = 0x1p+24;  // scale stays between them
  std::uint32_t growth_interval = 2000;
  std::uint32_t good_steps = 0;     // in a row, since the scale last changed
  std::uint64_t skipped_steps = 0;  // in all

  /// After a step whose gradients, of all ranks, were `finite` or not; if not, it is skipped.
  LossScale after(bool finite) const;
  /// What gradients are multiplied by before they are used.
  float unscale() const { return static_cast<float>(1 / scale); }

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

}  // namespace rehearse
