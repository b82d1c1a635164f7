// Σ e^x of a row, by a block: what softmax and cross-entropy are made of.
#pragma once

#include "kernels/math/cuda_device.cuh"

namespace rehearse {

/// e^largest · sum, kept apart as in kernels/math/softmax.hpp. All threads of the block get it.
struct RowPowers {
  float largest, sum;
};

__device__ inline RowPowers powers_of(const float* row, std::size_t width) {
  float largest = -INFINITY;
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x) largest = Larger{}(largest, row[c]);
  largest = block_max(largest);
  if (largest == -INFINITY) return {0, 0};
  float sum = 0;
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x) sum += expf(row[c] - largest);
  return {largest, block_sum(sum)};
}

}  // namespace rehearse
