// Attention on a GPU, forward: 64 queries of one head a block, keys and values in tiles of 32, and
// softmax on the way (FlashAttention-2, Dao 2023, algorithm 1): scores never reach memory.
//
//   m' = max(m, scores)   P = e^(scores - m')   l = l e^(m - m') + ΣP   O = O e^(m - m') + P V
#include "kernels/math/cuda_attention.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

template <int padded>
constexpr std::size_t forward_shared_bytes() {
  return sizeof(float) *
         ((tile_rows + 2 * tile_columns) * Tile<padded>::stride + tile_rows * score_stride);
}

// One tile of keys: scores in, P to shared memory; the row's maximum and sum move on, and what the
// output so far is multiplied by comes back.
__device__ float next_powers(float (&scores)[columns_each], float& largest, float& sum,
                             float* powers_row, const Thread& thread) {
  float top = -INFINITY;
#pragma unroll
  for (const float score : scores) top = fmaxf(top, score);
  top = fmaxf(largest, row_combine(top, Larger{}));
  const float keep = top == -INFINITY ? 1.0F : expf(largest - top);
  float added = 0;
#pragma unroll
  for (unsigned c = 0; c < columns_each; ++c) {
    const float power = scores[c] == -INFINITY ? 0.0F : expf(scores[c] - top);
    powers_row[thread.column(c)] = power;
    added += power;
  }
  sum = sum * keep + row_combine(added, Plus{});
  largest = top;
  return keep;
}

template <int padded>
__global__ void __launch_bounds__(block_size)
    attention_kernel(AttentionShape shape, const float* queries, const float* keys,
                     const float* values, float* y, float* log_sums) {
  const Thread thread;
  const DeviceHead head{shape, blockIdx.y / shape.heads, blockIdx.y % shape.heads};
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * tile_rows;
  const std::size_t rows_there = shape.queries - first;
  float* shared = dynamic_shared();
  const Tile<padded> q{shared}, k{q.numbers + tile_rows * q.stride},
      v{k.numbers + tile_columns * k.stride};
  float* powers = v.numbers + tile_columns * v.stride;
  q.load(queries + head.query(first), head.query_step(), shape.width, tile_rows, rows_there);
  float output[rows_each][padded / side] = {}, largest[rows_each], sum[rows_each] = {};
#pragma unroll
  for (float& value : largest) value = -INFINITY;
  for (std::size_t j = 0; j < shape.keys; j += tile_columns) {
    if (shape.causal && !head.sees(min(first + tile_rows, shape.queries) - 1, j)) break;
    __syncthreads();
    k.load(keys + head.key(j), head.key_step(), shape.width, tile_columns, shape.keys - j);
    v.load(values + head.key(j), head.key_step(), shape.width, tile_columns, shape.keys - j);
    __syncthreads();
    float scores[rows_each][columns_each];
    multiply(thread, q, k, scores);
#pragma unroll
    for (unsigned r = 0; r < rows_each; ++r) {
#pragma unroll
      for (unsigned c = 0; c < columns_each; ++c)
        scores[r][c] = head.sees(first + thread.row(r), j + thread.column(c))
                           ? scores[r][c] * shape.scale
                           : -INFINITY;
      const float keep =
          next_powers(scores[r], largest[r], sum[r], powers + thread.row(r) * score_stride, thread);
#pragma unroll
      for (float& value : output[r]) value *= keep;
    }
    __syncwarp();  // a row's powers are read by the half warp that wrote them
    add_product(thread, powers, v, output);
  }
  float factor[rows_each];
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r) {
    factor[r] = sum[r] == 0 ? 0.0F : 1 / sum[r];
    if (thread.x == 0 && thread.row(r) < rows_there)
      log_sums[head.row(first + thread.row(r))] =
          sum[r] == 0 ? -INFINITY : largest[r] + logf(sum[r]);
  }
  store_rows<padded>(thread, output, factor, y + head.query(first), head.query_step(), shape.width,
                     rows_there);
}

template <int padded>
void start(DeviceStream stream, const AttentionShape& shape, const AttentionInputs& inputs,
           std::span<float> y, std::span<float> log_sums) {
  constexpr std::size_t bytes = forward_shared_bytes<padded>();
  allow_shared(attention_kernel<padded>, bytes);
  const dim3 grid{static_cast<unsigned>((shape.queries + tile_rows - 1) / tile_rows),
                  static_cast<unsigned>(shape.batch * shape.heads)};
  launch(stream, {grid, dim3{block_size}, bytes}, attention_kernel<padded>, shape,
         inputs.queries.data(), inputs.keys.data(), inputs.values.data(), y.data(),
         log_sums.data());
}

}  // namespace

void attention(DeviceStream stream, const AttentionShape& shape, const AttentionInputs& inputs,
               std::span<float> y, std::span<float> log_sums) {
  ASSERT(shape.heads == 0 || (shape.key_heads > 0 && shape.heads % shape.key_heads == 0));
  ASSERT(inputs.queries.size() == shape.query_numbers() && y.size() == shape.query_numbers());
  ASSERT(inputs.keys.size() == shape.key_numbers());
  ASSERT(inputs.values.size() == shape.key_numbers());
  ASSERT(log_sums.size() == shape.score_rows());
  ASSERT(shape.width <= largest_attention_width && shape.batch * shape.heads <= 65535);
  if (y.empty()) return;
  if (shape.width <= 32)
    start<32>(stream, shape, inputs, y, log_sums);
  else if (shape.width <= 64)
    start<64>(stream, shape, inputs, y, log_sums);
  else
    start<128>(stream, shape, inputs, y, log_sums);
}

}  // namespace rehearse
