// The square of an fp32 number fits fp64 exactly; only the additions round.
#include "kernels/math/gradient_norm.hpp"

#include "sim/base/assert.hpp"

namespace rehearse {

double sum_of_squares(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

float clip_factor(double norm, double limit) {
  ASSERT(norm >= 0 && limit > 0);  // NaN too fails here: unscaled gradients are checked before
  return norm <= limit ? 1.0F : static_cast<float>(limit / norm);
}

}  // namespace rehearse
