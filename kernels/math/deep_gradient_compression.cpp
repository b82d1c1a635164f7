// Three small steps around top_k; see the header for their order.
#include "kernels/math/deep_gradient_compression.hpp"

#include <cmath>

#include "kernels/math/elementwise.hpp"
#include "kernels/math/gradient_norm.hpp"
#include "kernels/math/sparse.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

float clip_locally(std::span<float> gradient, double limit, std::size_t ranks) {
  ASSERT(limit > 0 && ranks > 0);
  const double local_limit = limit / std::sqrt(static_cast<double>(ranks));
  const float factor = clip_factor(std::sqrt(sum_of_squares(gradient)), local_limit);
  if (factor != 1) scale(gradient, factor, gradient);
  return factor;
}

void correct_momentum(std::span<const float> gradient, float momentum, CompressionState state) {
  ASSERT(state.velocity.size() == gradient.size());
  ASSERT(state.accumulated.size() == gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    state.velocity[i] = momentum * state.velocity[i] + gradient[i];
    state.accumulated[i] += state.velocity[i];
  }
}

void take_out(CompressionState state, std::span<const std::uint32_t> indices,
              std::span<float> values) {
  sparse_gather(state.accumulated, indices, values);
  sparse_clear(indices, state.accumulated);
  sparse_clear(indices, state.velocity);
}

}  // namespace rehearse
