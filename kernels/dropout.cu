// Dropout on a GPU: a thread has one block of Philox, the four elements whose numbers share it.
#include <cmath>

#include "kernels/cuda_device.cuh"
#include "kernels/cuda_kernels.hpp"
#include "sim/assert.hpp"

namespace rehearse {

namespace {

struct Mask {
  RandomWords words;
  std::uint64_t first, limit;  // dropped are words below the limit
  float kept;                  // what the others are multiplied by
};

Mask mask_of(const Dropout& dropout) {
  const double p = dropout.probability;
  ASSERT(p >= 0 && p <= 1);
  return {dropout.words, dropout.first, static_cast<std::uint64_t>(std::ldexp(p, 32)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F};
}

template <bool with_residual>
__global__ void __launch_bounds__(block_size)
    dropout_kernel(const float* x, const float* residual, Mask mask, float* y,
                   std::size_t numbers) {
  const std::uint64_t first_block = mask.first / 4;
  const std::uint64_t blocks = (mask.first + numbers - 1) / 4 - first_block + 1;
  for (std::uint64_t b = global_thread(); b < blocks; b += grid_threads()) {
    const PhiloxCounter words = mask.words.block(first_block + b);
#pragma unroll
    for (unsigned lane = 0; lane < 4; ++lane) {
      const std::uint64_t element = 4 * (first_block + b) + lane;
      if (element < mask.first || element - mask.first >= numbers) continue;
      const std::uint64_t i = element - mask.first;
      // Not a product: what falls is 0 even where x is infinite or NaN.
      float value = words[lane] < mask.limit || mask.kept == 0 ? 0.0F : x[i] * mask.kept;
      if constexpr (with_residual) value += residual[i];
      y[i] = value;
    }
  }
}

template <bool with_residual>
void dropout_with(DeviceStream stream, std::span<const float> x, const float* residual,
                  const Dropout& dropout, std::span<float> y) {
  ASSERT(x.size() == y.size());
  if (y.empty()) return;
  launch(stream, {grid_for(y.size() / 4 + 2)}, dropout_kernel<with_residual>, x.data(), residual,
         mask_of(dropout), y.data(), y.size());
}

}  // namespace

void dropout(DeviceStream stream, std::span<const float> x, const Dropout& mask,
             std::span<float> y) {
  dropout_with<false>(stream, x, nullptr, mask, y);
}

void dropout_add(DeviceStream stream, std::span<const float> x, std::span<const float> residual,
                 const Dropout& mask, std::span<float> y) {
  ASSERT(residual.size() == y.size());
  dropout_with<true>(stream, x, residual.data(), mask, y);
}

}  // namespace rehearse
