// Attention on a GPU, backward: P is computed again from the log-sum-exp, once for the gradient of
// the queries and once for those of keys and values. Twice the scores (7 products, not 5) buy sums
// in a fixed order without atomics: the same bits on every run.
//
//   D = Σ y · dy,  P = e^(scale q·k - lse),  dS = scale P (dy·v - D)
//   dq = dS k (a block has 64 queries)      dk = dSᵀ q, dv = Pᵀ dy (a block has 64 keys)
#include "kernels/math/cuda_attention.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct Operands {
  const float *queries, *keys, *values, *y_gradient, *log_sums, *row_dots;
};

// A warp has one row of one head.
__global__ void __launch_bounds__(block_size)
    row_dots_kernel(AttentionShape shape, const float* y, const float* y_gradient,
                    float* row_dots) {
  const std::size_t rows = shape.score_rows(), warps = grid_threads() / warp_lanes;
  for (std::size_t r = global_thread() / warp_lanes; r < rows; r += warps) {
    const std::size_t batch_head = r / shape.queries;
    const DeviceHead head{shape, batch_head / shape.heads, batch_head % shape.heads};
    const std::size_t first = head.query(r % shape.queries);
    float sum = 0;
    for (std::size_t d = threadIdx.x % warp_lanes; d < shape.width; d += warp_lanes)
      sum = fmaf(y[first + d], y_gradient[first + d], sum);
    sum = warp_combine(sum, Plus{});
    if (threadIdx.x % warp_lanes == 0) row_dots[r] = sum;
  }
}

template <int padded>
constexpr std::size_t backward_shared_bytes(unsigned score_tiles) {
  return sizeof(float) * (2 * (tile_rows + tile_columns) * Tile<padded>::stride +
                          score_tiles * tile_rows * score_stride);
}

template <int padded>
__global__ void __launch_bounds__(block_size)
    query_gradient_kernel(AttentionShape shape, Operands from, float* query_gradient) {
  const Thread thread;
  const DeviceHead head{shape, blockIdx.y / shape.heads, blockIdx.y % shape.heads};
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * tile_rows;
  const std::size_t rows_there = shape.queries - first;
  const Tile<padded> q{dynamic_shared()}, dy{q.numbers + tile_rows * q.stride},
      k{dy.numbers + tile_rows * q.stride}, v{k.numbers + tile_columns * q.stride};
  float* slopes = v.numbers + tile_columns * v.stride;
  q.load(from.queries + head.query(first), head.query_step(), shape.width, tile_rows, rows_there);
  dy.load(from.y_gradient + head.query(first), head.query_step(), shape.width, tile_rows,
          rows_there);
  float sums[rows_each][padded / side] = {};
  for (std::size_t j = 0; j < shape.keys; j += tile_columns) {
    if (shape.causal && !head.sees(min(first + tile_rows, shape.queries) - 1, j)) break;
    __syncthreads();
    k.load(from.keys + head.key(j), head.key_step(), shape.width, tile_columns, shape.keys - j);
    v.load(from.values + head.key(j), head.key_step(), shape.width, tile_columns, shape.keys - j);
    __syncthreads();
    float scores[rows_each][columns_each], dots[rows_each][columns_each];
    multiply(thread, q, k, scores);
    multiply(thread, dy, v, dots);
#pragma unroll
    for (unsigned r = 0; r < rows_each; ++r)
#pragma unroll
      for (unsigned c = 0; c < columns_each; ++c) {
        const std::size_t i = first + thread.row(r);
        float slope = 0;
        if (head.sees(i, j + thread.column(c))) {
          const float p = expf(scores[r][c] * shape.scale - from.log_sums[head.row(i)]);
          slope = shape.scale * p * (dots[r][c] - from.row_dots[head.row(i)]);
        }
        slopes[thread.row(r) * score_stride + thread.column(c)] = slope;
      }
    __syncwarp();
    add_product(thread, slopes, k, sums);
  }
  const float one[rows_each] = {1, 1, 1, 1};
  store_rows<padded>(thread, sums, one, query_gradient + head.query(first), head.query_step(),
                     shape.width, rows_there);
}

// P and dS of 64 keys and 32 queries, transposed: a row is a key.
__device__ void key_slopes(const DeviceHead& head, const Thread& thread, const Operands& from,
                           std::size_t first_key, std::size_t first_query,
                           const float (&scores)[rows_each][columns_each],
                           const float (&dots)[rows_each][columns_each], float* powers,
                           float* slopes) {
  const AttentionShape& shape = head.shape;
#pragma unroll
  for (unsigned r = 0; r < rows_each; ++r)
#pragma unroll
    for (unsigned c = 0; c < columns_each; ++c) {
      const std::size_t i = first_query + thread.column(c);
      float p = 0, slope = 0;
      if (head.sees(i, first_key + thread.row(r))) {
        p = expf(scores[r][c] * shape.scale - from.log_sums[head.row(i)]);
        slope = shape.scale * p * (dots[r][c] - from.row_dots[head.row(i)]);
      }
      powers[thread.row(r) * score_stride + thread.column(c)] = p;
      slopes[thread.row(r) * score_stride + thread.column(c)] = slope;
    }
}

template <int padded>
__global__ void __launch_bounds__(block_size)
    key_gradient_kernel(AttentionShape shape, Operands from, float* key_gradient,
                        float* value_gradient) {
  const Thread thread;
  const std::size_t group = shape.heads / shape.key_heads;
  const std::size_t batch = blockIdx.y / shape.key_heads, key_head = blockIdx.y % shape.key_heads;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * tile_rows;
  const std::size_t rows_there = shape.keys - first;
  const Tile<padded> k{dynamic_shared()}, v{k.numbers + tile_rows * k.stride},
      q{v.numbers + tile_rows * k.stride}, dy{q.numbers + tile_columns * k.stride};
  float* powers = dy.numbers + tile_columns * k.stride;
  float* slopes = powers + tile_rows * score_stride;
  const DeviceHead any{shape, batch, key_head * group};
  k.load(from.keys + any.key(first), any.key_step(), shape.width, tile_rows, rows_there);
  v.load(from.values + any.key(first), any.key_step(), shape.width, tile_rows, rows_there);
  float key_sums[rows_each][padded / side] = {}, value_sums[rows_each][padded / side] = {};
  for (std::size_t h = key_head * group; h < (key_head + 1) * group; ++h) {
    const DeviceHead head{shape, batch, h};
    for (std::size_t i = 0; i < shape.queries; i += tile_columns) {
      if (shape.causal && !head.sees(min(i + tile_columns, shape.queries) - 1, first)) continue;
      __syncthreads();
      q.load(from.queries + head.query(i), head.query_step(), shape.width, tile_columns,
             shape.queries - i);
      dy.load(from.y_gradient + head.query(i), head.query_step(), shape.width, tile_columns,
              shape.queries - i);
      __syncthreads();
      float scores[rows_each][columns_each], dots[rows_each][columns_each];
      multiply(thread, k, q, scores);
      multiply(thread, v, dy, dots);
      key_slopes(head, thread, from, first, i, scores, dots, powers, slopes);
      __syncwarp();
      add_product(thread, powers, dy, value_sums);
      add_product(thread, slopes, q, key_sums);
    }
  }
  const float one[rows_each] = {1, 1, 1, 1};
  store_rows<padded>(thread, key_sums, one, key_gradient + any.key(first), any.key_step(),
                     shape.width, rows_there);
  store_rows<padded>(thread, value_sums, one, value_gradient + any.key(first), any.key_step(),
                     shape.width, rows_there);
}

template <int padded>
void start(DeviceStream stream, const AttentionShape& shape, const Operands& from,
           const AttentionGradients& to) {
  const auto tiles = [](std::size_t rows) {
    return static_cast<unsigned>((rows + tile_rows - 1) / tile_rows);
  };
  constexpr std::size_t query_bytes = backward_shared_bytes<padded>(1);
  constexpr std::size_t key_bytes = backward_shared_bytes<padded>(2);
  allow_shared(query_gradient_kernel<padded>, query_bytes);
  allow_shared(key_gradient_kernel<padded>, key_bytes);
  const dim3 query_grid{tiles(shape.queries), static_cast<unsigned>(shape.batch * shape.heads)};
  const dim3 key_grid{tiles(shape.keys), static_cast<unsigned>(shape.batch * shape.key_heads)};
  if (!to.queries.empty())
    launch(stream, {query_grid, dim3{block_size}, query_bytes}, query_gradient_kernel<padded>,
           shape, from, to.queries.data());
  if (!to.keys.empty())
    launch(stream, {key_grid, dim3{block_size}, key_bytes}, key_gradient_kernel<padded>, shape,
           from, to.keys.data(), to.values.data());
}

}  // namespace

void attention_backward(DeviceStream stream, const AttentionShape& shape,
                        const AttentionInputs& inputs, std::span<const float> y,
                        std::span<const float> log_sums, std::span<const float> y_gradient,
                        std::span<float> row_dots, const AttentionGradients& gradients) {
  ASSERT(y.size() == shape.query_numbers() && y_gradient.size() == y.size());
  ASSERT(log_sums.size() == shape.score_rows() && row_dots.size() == log_sums.size());
  ASSERT(gradients.queries.size() == y.size() && gradients.keys.size() == shape.key_numbers());
  ASSERT(gradients.values.size() == shape.key_numbers());
  ASSERT(shape.width <= largest_attention_width && shape.batch * shape.heads <= 65535);
  if (!y.empty())
    launch(stream, {grid_for(shape.score_rows(), block_size / warp_lanes)}, row_dots_kernel, shape,
           y.data(), y_gradient.data(), row_dots.data());
  const Operands from{inputs.queries.data(), inputs.keys.data(), inputs.values.data(),
                      y_gradient.data(),     log_sums.data(),    row_dots.data()};
  if (shape.width <= 32)
    start<32>(stream, shape, from, gradients);
  else if (shape.width <= 64)
    start<64>(stream, shape, from, gradients);
  else
    start<128>(stream, shape, from, gradients);
}

}  // namespace rehearse
