// What attention's forward and backward kernels share: tiles in shared memory, and products of them
// by 16 × 16 threads that hold their results in registers.
//
//   scores[64][32] of a tile: thread (ty, tx) has rows 4 ty … 4 ty + 3 and columns tx, tx + 16
//   output[64][width]:        the same rows, and columns tx, tx + 16, …
//
// So the 16 threads of a row are half a warp, and sums along rows are shuffles. Tiles have one
// column more than they need: columns of a tile then lie in different banks.
#pragma once

#include "kernels/math/attention.hpp"
#include "kernels/math/cuda_device.cuh"

namespace rehearse {

inline constexpr unsigned tile_rows = 64, tile_columns = 32;  // of a tile of scores
inline constexpr unsigned side = 16;                          // of the square of threads
inline constexpr unsigned rows_each = tile_rows / side, columns_each = tile_columns / side;
inline constexpr unsigned score_stride = tile_columns + 1;

/// Where the numbers of one head lie, as in kernels/math/attention.cpp.
struct DeviceHead {
  AttentionShape shape;
  std::size_t batch, head, key_head;

  __device__ DeviceHead(const AttentionShape& of, std::size_t batch_number, std::size_t head_number)
      : shape{of},
        batch{batch_number},
        head{head_number},
        key_head{head_number / (of.heads / of.key_heads)} {}

  __device__ std::size_t query(std::size_t i) const {
    return ((batch * shape.queries + i) * shape.heads + head) * shape.width;
  }
  __device__ std::size_t key(std::size_t j) const {
    return ((batch * shape.keys + j) * shape.key_heads + key_head) * shape.width;
  }
  __device__ std::size_t row(std::size_t i) const {
    return (batch * shape.heads + head) * shape.queries + i;
  }
  __device__ std::size_t query_step() const { return shape.heads * shape.width; }
  __device__ std::size_t key_step() const { return shape.key_heads * shape.width; }
  __device__ bool sees(std::size_t i, std::size_t j) const {
    return i < shape.queries && j < shape.keys &&
           (!shape.causal || j + shape.queries <= i + shape.keys);
  }
};

/// Rows of numbers in shared memory, `padded` and one more apart; zeros where there are none.
template <int padded>
struct Tile {
  static constexpr unsigned stride = padded + 1;
  float* numbers;

  __device__ float at(unsigned row, unsigned column) const {
    return numbers[row * stride + column];
  }
  __device__ void load(const float* source, std::size_t step, std::size_t width, unsigned rows,
                       std::size_t rows_there) const {
    for (unsigned i = threadIdx.x; i < rows * padded; i += block_size) {
      const unsigned row = i / padded, column = i % padded;
      const bool is_there = row < rows_there && column < width;
      numbers[row * stride + column] = is_there ? source[row * step + column] : 0.0F;
    }
  }
};

struct Thread {
  unsigned x = threadIdx.x % side, y = threadIdx.x / side;

  __device__ unsigned row(unsigned r) const { return y * rows_each + r; }
  __device__ unsigned column(unsigned c) const { return x + side * c; }
};

/// products[r][c] = row r of `left` · row c of `right`
template <int padded>
__device__ void multiply(const Thread& thread, Tile<padded> left, Tile<padded> right,
                         float (&products)[rows_each][columns_each]) {
#pragma unroll
  for (auto& row : products)
    for (float& product : row) product = 0;
#pragma unroll 4
  for (unsigned d = 0; d < padded; ++d) {
    float l[rows_each], r[columns_each];
#pragma unroll
    for (unsigned i = 0; i < rows_each; ++i) l[i] = left.at(thread.row(i), d);
#pragma unroll
    for (unsigned i = 0; i < columns_each; ++i) r[i] = right.at(thread.column(i), d);
#pragma unroll
    for (unsigned i = 0; i < rows_each; ++i)
#pragma unroll
      for (unsigned j = 0; j < columns_each; ++j) products[i][j] = fmaf(l[i], r[j], products[i][j]);
  }
}

/// sums[r][c] += row r of `factors` · column c of `right`
template <int padded>
__device__ void add_product(const Thread& thread, const float* factors, Tile<padded> right,
                            float (&sums)[rows_each][padded / side]) {
#pragma unroll 2
  for (unsigned j = 0; j < tile_columns; ++j) {
    float f[rows_each];
#pragma unroll
    for (unsigned i = 0; i < rows_each; ++i) f[i] = factors[thread.row(i) * score_stride + j];
#pragma unroll
    for (unsigned c = 0; c < padded / side; ++c) {
      const float value = right.at(j, thread.column(c));
#pragma unroll
      for (unsigned i = 0; i < rows_each; ++i) sums[i][c] = fmaf(f[i], value, sums[i][c]);
    }
  }
}

/// Over the 16 threads of a row.
template <class Combine>
__device__ float row_combine(float value, Combine combine) {
  for (int distance = side / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(all_lanes, value, distance));
  return value;
}

/// rows[r] of a thread, times factor[r], to memory.
template <int padded>
__device__ void store_rows(const Thread& thread, const float (&rows)[rows_each][padded / side],
                           const float (&factor)[rows_each], float* target, std::size_t step,
                           std::size_t width, std::size_t rows_there) {
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    if (thread.row(r) >= rows_there) continue;
#pragma unroll
    for (unsigned c = 0; c < padded / side; ++c)
      if (thread.column(c) < width)
        target[thread.row(r) * step + thread.column(c)] = rows[r][c] * factor[r];
  }
}

/// More shared memory than 48 KiB must be asked for, once a kernel and device.
template <class Kernel>
void allow_shared(Kernel* kernel, std::size_t bytes) {
  CUDA_TRY(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes)));
}

}  // namespace rehearse
