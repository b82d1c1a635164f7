// Rows of a table by token on a GPU, and the sums back in the order of positions: no atomics, the
// same bits as on the host.
//
//   backward: one block a position. If its token was there before, the block leaves; else it adds
//   the rows of all positions with this token, in order. Looking through all tokens is n² reads of
//   4 bytes out of the cache: 8192 positions are 0.3 GB, less than the rows of 4096 numbers.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__global__ void __launch_bounds__(block_size)
    embedding_kernel(const float* table, RowShape shape, std::int64_t first, float outside,
                     const Token* tokens, float* y) {
  const auto token =
      static_cast<std::size_t>(static_cast<std::int64_t>(tokens[blockIdx.x]) - first);
  float* row = y + blockIdx.x * shape.width;
  for (std::size_t c = threadIdx.x; c < shape.width; c += blockDim.x)
    row[c] = token < shape.rows ? table[token * shape.width + c] : outside;
}

__global__ void __launch_bounds__(block_size)
    embedding_backward_kernel(const float* y_gradient, const Token* tokens, std::size_t positions,
                              float* table_gradient, RowShape shape, std::int64_t first) {
  const Token mine = tokens[blockIdx.x];
  const auto word = static_cast<std::size_t>(static_cast<std::int64_t>(mine) - first);
  bool was_before = false;
  for (std::size_t i = threadIdx.x; i < blockIdx.x; i += block_size)
    was_before = was_before || tokens[i] == mine;
  if (__syncthreads_or(was_before ? 1 : 0) || word >= shape.rows) return;
  float* row = table_gradient + word * shape.width;
  // Each thread has its columns; all of them walk through the positions together.
  for (std::size_t begin = blockIdx.x; begin < positions; begin += block_size) {
    __shared__ Token window[block_size];
    __syncthreads();
    if (begin + threadIdx.x < positions) window[threadIdx.x] = tokens[begin + threadIdx.x];
    __syncthreads();
    const std::size_t left = positions - begin;
    for (unsigned i = 0; i < block_size && i < left; ++i) {
      if (window[i] != mine) continue;
      const float* gradient = y_gradient + (begin + i) * shape.width;
      for (std::size_t c = threadIdx.x; c < shape.width; c += block_size) row[c] += gradient[c];
    }
  }
}

}  // namespace

void embedding(DeviceStream stream, std::span<const float> table, RowShape table_shape,
               std::span<const Token> tokens, std::span<float> y, const WordsHere& words) {
  ASSERT(table.size() == table_shape.size() && y.size() == tokens.size() * table_shape.width);
  if (y.empty()) return;
  launch(stream, row_launch({tokens.size(), table_shape.width}), embedding_kernel, table.data(),
         table_shape, words.first, words.outside, tokens.data(), y.data());
}

void embedding_backward(DeviceStream stream, std::span<const float> y_gradient,
                        std::span<const Token> tokens, std::span<float> table_gradient,
                        RowShape table_shape, std::int64_t first) {
  ASSERT(table_gradient.size() == table_shape.size());
  ASSERT(y_gradient.size() == tokens.size() * table_shape.width);
  if (y_gradient.empty()) return;
  launch(stream, {grid_of_rows(tokens.size())}, embedding_backward_kernel, y_gradient.data(),
         tokens.data(), tokens.size(), table_gradient.data(), table_shape, first);
}

}  // namespace rehearse
