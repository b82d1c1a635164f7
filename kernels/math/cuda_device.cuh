// What all CUDA kernels share: launching on a stream, grids, sums over warps and blocks, packs of
// four numbers. Compiled by nvcc, and as plain C++ by the emulated runtime (tests/emulated_cuda).
//
// Blocks are 256 threads, or fewer for a narrow row: 8 of them fill an SM of an A100 or H100 (2048
// threads) as long as a thread needs at most 32 registers, 4 with 64.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/math/cuda_try.hpp"
#include "kernels/math/rows.hpp"

namespace rehearse {

inline constexpr unsigned block_size = 256;
inline constexpr unsigned warp_lanes = 32;
inline constexpr unsigned all_lanes = 0xffffffffU;

struct Launch {
  dim3 grid{1}, block{block_size};
  std::size_t shared_bytes = 0;
};

/// Starts the kernel on the stream; arguments are converted as in a call.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, const Launch& shape, void (*kernel)(Parameters...),
            Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  CUDA_TRY(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

/// Blocks for `items`, `each` of them a block; loops over the grid take the rest. 1024 blocks are
/// 7.75 waves' worth of an H100's 132 SMs at one block each, so that no SM idles for long.
inline dim3 grid_for(std::size_t items, std::size_t each = block_size) {
  constexpr std::size_t most = 1024;
  return dim3{static_cast<unsigned>(std::clamp<std::size_t>((items + each - 1) / each, 1, most))};
}

/// One block a row; rows may be more than the 65535 of the other axes, not more than 2^31 - 1.
inline dim3 grid_of_rows(std::size_t rows) { return dim3{static_cast<unsigned>(rows)}; }

/// The same, of as many warps as the row has work for: in a row of 64 numbers 6 of 8 warps would
/// only wait at every barrier.
inline Launch row_launch(RowShape shape) {
  const std::size_t threads = (shape.width + warp_lanes - 1) / warp_lanes * warp_lanes;
  return {grid_of_rows(shape.rows),
          dim3{static_cast<unsigned>(std::clamp<std::size_t>(threads, warp_lanes, block_size))}};
}

inline bool aligned16(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

__device__ inline std::size_t global_thread() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::size_t grid_threads() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

__device__ inline float4 four_at(const float* numbers, std::size_t four) {
  return reinterpret_cast<const float4*>(numbers)[four];
}
__device__ inline void store_four(float* numbers, std::size_t four, float4 values) {
  reinterpret_cast<float4*>(numbers)[four] = values;
}

struct Plus {
  template <class Number>
  __device__ Number operator()(Number a, Number b) const {
    return a + b;
  }
};
// Unlike fmaxf, hands a NaN on: a row with one must not look like a row without.
struct Larger {
  __device__ float operator()(float a, float b) const { return isnan(b) || b > a ? b : a; }
};

template <class Number, class Combine>
__device__ Number warp_combine(Number value, Combine combine) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(all_lanes, value, distance));
  return value;
}

/// The same number in every thread. Always in the same order: the same bits on every run. `scratch`
/// is shared, one number a warp, and may be used again at once.
template <class Number, class Combine>
__device__ Number block_combine(Number value, Combine combine, Number* scratch) {
  value = warp_combine(value, combine);
  const unsigned warp = threadIdx.x / warp_lanes, lane = threadIdx.x % warp_lanes;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  Number total = scratch[0];
  for (unsigned w = 1; w < blockDim.x / warp_lanes; ++w) total = combine(total, scratch[w]);
  __syncthreads();
  return total;
}

template <class Number>
__device__ Number block_sum(Number value) {
  __shared__ Number scratch[block_size / warp_lanes];
  return block_combine(value, Plus{}, scratch);
}
__device__ inline float block_max(float value) {
  __shared__ float scratch[block_size / warp_lanes];
  return block_combine(value, Larger{}, scratch);
}

/// The bytes that a launch asked for, aligned for anything.
__device__ inline float* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ float4 dynamic_shared_bytes[];
  return reinterpret_cast<float*>(dynamic_shared_bytes);
#else
  return static_cast<float*>(emulated_cuda::dynamic_shared());
#endif
}

}  // namespace rehearse
