// One bit pattern tells: infinities and NaNs have all exponent bits set.
#include "kernels/math/loss_scale.hpp"

#include <algorithm>
#include <bit>

#include "sim/base/assert.hpp"

namespace rehearse {

bool all_finite(std::span<const float> x) {
  return std::ranges::all_of(x, [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & 0x7f800000) != 0x7f800000;
  });
}

bool all_finite(std::span<const Fp16> x) {
  return std::ranges::all_of(
      x, [](Fp16 value) { return (static_cast<std::uint32_t>(value) & 0x7c00) != 0x7c00; });
}

bool all_finite(std::span<const Bf16> x) {
  return std::ranges::all_of(
      x, [](Bf16 value) { return (static_cast<std::uint32_t>(value) & 0x7f80) != 0x7f80; });
}

LossScale LossScale::after(bool finite) const {
  ASSERT(growth >= 1 && backoff > 0 && backoff <= 1 && growth_interval > 0);
  LossScale next = *this;
  if (!finite) {
    next.scale = std::max(least, scale * backoff);
    next.good_steps = 0;
    ++next.skipped_steps;
  } else if (++next.good_steps == growth_interval) {
    next.scale = std::min(largest, scale * growth);
    next.good_steps = 0;
  }
  return next;
}

}  // namespace rehearse
