// Sums down the columns of a matrix, for kernels whose gradients of parameters are such sums:
// always in the same order, and no atomics.
#pragma once

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/rows.hpp"

namespace rehearse {

inline constexpr unsigned column_threads = block_size / warp_lanes;

inline Launch column_launch(RowShape shape) {
  return {dim3{static_cast<unsigned>((shape.width + warp_lanes - 1) / warp_lanes)},
          dim3{warp_lanes, column_threads}};
}

/// Of this thread: x counts columns, y counts the rows that it begins with.
struct ColumnTile {
  std::size_t column;
  bool is_inside;

  __device__ explicit ColumnTile(RowShape shape)
      : column{static_cast<std::size_t>(blockIdx.x) * warp_lanes + threadIdx.x},
        is_inside{column < shape.width} {}

  /// target[column] += the sums of all threads of the column. Every thread of the block calls it.
  __device__ void add(double sum, float* target) const {
    __shared__ double sums[column_threads][warp_lanes];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && is_inside) {
      for (unsigned y = 1; y < column_threads; ++y) sum += sums[y][threadIdx.x];
      target[column] = static_cast<float>(static_cast<double>(target[column]) + sum);
    }
    __syncthreads();
  }
};

}  // namespace rehearse
