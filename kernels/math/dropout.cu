// Dropout on a GPU: a thread has one block of Philox, the four elements whose numbers share it.
#include <cmath>

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/step_state.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct Mask {
  RandomWords words;
  std::uint64_t first, limit;  // dropped are words below the limit
  float kept;                  // what the others are multiplied by
  DropoutRuns runs;
};

Mask mask_of(const Dropout& dropout, DropoutRuns runs) {
  const double p = dropout.probability;
  ASSERT(p >= 0 && p <= 1);
  return {dropout.words, dropout.first, static_cast<std::uint64_t>(std::ldexp(p, 32)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F, runs};
}

// Blocks of Philox that a run of numbers may touch: it may begin with the last word of one.
__host__ __device__ std::size_t blocks_of_run(std::size_t numbers) { return (numbers + 6) / 4; }

template <bool with_residual>
__global__ void __launch_bounds__(block_size)
    dropout_kernel(const float* x, const float* residual, const StepState* state, Mask mask,
                   float* y, std::size_t numbers) {
  RandomWords of_step = mask.words;
  if (state != nullptr)
    of_step.stream +=
        dropout_streams_of_step * static_cast<std::uint64_t>(state->taken + state->skipped);
  const std::size_t each = blocks_of_run(mask.runs.block);
  const std::size_t blocks = numbers / mask.runs.block * each;
  for (std::size_t b = global_thread(); b < blocks; b += grid_threads()) {
    const std::size_t run = b / each;
    const std::uint64_t first = mask.first + run * mask.runs.stride;
    const std::uint64_t block = first / 4 + (b - run * each);
    const PhiloxCounter words = of_step.block(block);
#pragma unroll
    for (unsigned lane = 0; lane < 4; ++lane) {
      const std::uint64_t element = 4 * block + lane;
      if (element < first || element - first >= mask.runs.block) continue;
      const std::size_t i = run * mask.runs.block + (element - first);
      // Not a product: what falls is 0 even where x is infinite or NaN.
      float value = words[lane] < mask.limit || mask.kept == 0 ? 0.0F : x[i] * mask.kept;
      if constexpr (with_residual) value += residual[i];
      y[i] = value;
    }
  }
}

template <bool with_residual>
void dropout_with(DeviceStream stream, std::span<const float> x, const float* residual,
                  const StepState* state, const Mask& mask, std::span<float> y) {
  ASSERT(x.size() == y.size());
  if (y.empty()) return;
  ASSERT(mask.runs.block > 0 && y.size() % mask.runs.block == 0);
  const std::size_t blocks = y.size() / mask.runs.block * blocks_of_run(mask.runs.block);
  launch(stream, {grid_for(blocks)}, dropout_kernel<with_residual>, x.data(), residual, state, mask,
         y.data(), y.size());
}

}  // namespace

void dropout(DeviceStream stream, std::span<const float> x, const Dropout& mask,
             std::span<float> y) {
  dropout_with<false>(stream, x, nullptr, nullptr, mask_of(mask, {x.size(), 0}), y);
}

void dropout_add(DeviceStream stream, std::span<const float> x, std::span<const float> residual,
                 const Dropout& mask, std::span<float> y) {
  ASSERT(residual.size() == y.size());
  dropout_with<true>(stream, x, residual.data(), nullptr, mask_of(mask, {x.size(), 0}), y);
}

void dropout(DeviceStream stream, std::span<const float> x, const StepState* state,
             const Dropout& mask, DropoutRuns runs, std::span<float> y) {
  dropout_with<false>(stream, x, nullptr, state, mask_of(mask, runs), y);
}

}  // namespace rehearse
