// The loop around every optimizer: weight and gradient in, new weight out, and its 16-bit copy.
#pragma once

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_number_formats.cuh"
#include "sim/base/assert.hpp"

namespace rehearse {

struct NoCopy {};
__device__ inline void store_copy(NoCopy, std::size_t, float) {}
template <class Narrow>
__device__ void store_copy(Narrow* copy, std::size_t i, float weight) {
  copy[i] = narrowed<Narrow>(weight);
}

// Most steps ask nothing more of the factors than that of the gradient; LAMB's last has no gradient
// any more.
template <class Step>
__device__ void correct(Step&, const StepFactors&) {}
template <class Step>
__device__ float factor_of(const Step&, const StepFactors& factors) {
  return factors.gradient_factor;
}

// Four elements a thread and turn, a block apart: their loads are under way together, and any
// alignment will do.
template <class Step, class Copy>
__global__ void __launch_bounds__(block_size)
    update_kernel(Step step, const StepFactors* factors, float* master, const float* gradient,
                  float gradient_factor, Copy copy, std::size_t numbers) {
  if (factors != nullptr) {
    if (factors->is_finite == 0) return;
    gradient_factor = factor_of(step, *factors);
    correct(step, *factors);
  }
  constexpr unsigned each = 4;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * block_size * each;
  for (std::size_t base = static_cast<std::size_t>(blockIdx.x) * block_size * each + threadIdx.x;
       base < numbers; base += stride) {
#pragma unroll
    for (unsigned turn = 0; turn < each; ++turn) {
      const std::size_t i = base + turn * block_size;
      if (i >= numbers) break;
      const float w = step(i, master[i], gradient[i] * gradient_factor);
      master[i] = w;
      store_copy(copy, i, w);
    }
  }
}

template <class Step>
void update_weights(DeviceStream stream, const Weights& weights, const Step& step,
                    const StepFactors* factors) {
  const std::size_t numbers = weights.master.size();
  ASSERT(weights.gradient.size() == numbers);
  if (numbers == 0) return;
  const auto start = [&](auto copy) {
    launch(stream, {grid_for(numbers, 4 * block_size)}, update_kernel<Step, decltype(copy)>, step,
           factors, weights.master.data(), weights.gradient.data(), weights.gradient_factor, copy,
           numbers);
  };
  if (const auto* fp16 = std::get_if<std::span<Fp16>>(&weights.copy)) {
    ASSERT(fp16->size() == numbers);
    start(fp16->data());
  } else if (const auto* bf16 = std::get_if<std::span<Bf16>>(&weights.copy)) {
    ASSERT(bf16->size() == numbers);
    start(bf16->data());
  } else {
    start(NoCopy{});
  }
}

}  // namespace rehearse
