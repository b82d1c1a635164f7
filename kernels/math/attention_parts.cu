// Attention with its scores in memory on a GPU: the products one thread a number of the result, the
// softmax one block a row. Sums in fp64 in the order of memory, as on the host: these serve models
// whose attention is not fused, where the products' time is the memory's.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

std::size_t pair_count(const AttentionShape& s) { return s.score_rows() * s.keys; }

__device__ double wide(float value) { return static_cast<double>(value); }

// A row of pairs is [batch][head][query]; where its query and a key of it lie.
struct Row {
  std::size_t batch, head, query;
  __device__ Row(const AttentionShape& s, std::size_t row)
      : batch{row / s.queries / s.heads}, head{row / s.queries % s.heads}, query{row % s.queries} {}
  __device__ std::size_t query_at(const AttentionShape& s) const {
    return ((batch * s.queries + query) * s.heads + head) * s.width;
  }
  __device__ std::size_t key_at(const AttentionShape& s, std::size_t key) const {
    return ((batch * s.keys + key) * s.key_heads + head / (s.heads / s.key_heads)) * s.width;
  }
};

__global__ void __launch_bounds__(block_size)
    pairs_kernel(AttentionShape s, const float* x, const float* y, float* pairs, std::size_t all) {
  for (std::size_t i = global_thread(); i < all; i += grid_threads()) {
    const Row row{s, i / s.keys};
    const float* query = x + row.query_at(s);
    const float* key = y + row.key_at(s, i % s.keys);
    double sum = 0;
    for (std::size_t w = 0; w < s.width; ++w) sum += wide(query[w]) * wide(key[w]);
    pairs[i] = static_cast<float>(sum);
  }
}

__global__ void __launch_bounds__(block_size)
    over_keys_kernel(AttentionShape s, const float* pairs, const float* y, float* x,
                     std::size_t all) {
  for (std::size_t i = global_thread(); i < all; i += grid_threads()) {
    const std::size_t number = i / s.width;
    const Row row{s, number};
    double sum = 0;
    for (std::size_t j = 0; j < s.keys; ++j)
      sum += wide(pairs[number * s.keys + j]) * wide(y[row.key_at(s, j) + i % s.width]);
    x[row.query_at(s) + i % s.width] = static_cast<float>(sum);
  }
}

// y is [batch][key][key head][width]; the heads that share keys come one after another.
__global__ void __launch_bounds__(block_size)
    over_queries_kernel(AttentionShape s, const float* pairs, const float* x, float* y,
                        std::size_t all) {
  const std::size_t shared = s.heads / s.key_heads;
  for (std::size_t i = global_thread(); i < all; i += grid_threads()) {
    const std::size_t head = i / s.width % s.key_heads, place = i / s.width / s.key_heads;
    const std::size_t batch = place / s.keys, key = place % s.keys;
    double sum = 0;
    const float* pair = pairs + (batch * s.heads + head * shared) * s.queries * s.keys + key;
    const float* number = x + (batch * s.queries * s.heads + head * shared) * s.width + i % s.width;
    for (std::size_t h = 0; h < shared; ++h) {
      // Unrolled, it would keep 60 registers for addresses.
#pragma unroll 1
      for (std::size_t query = 0; query < s.queries; ++query, pair += s.keys)
        sum += wide(*pair) * wide(number[query * s.heads * s.width]);
      number += s.width;
    }
    y[i] = static_cast<float>(sum);
  }
}

__global__ void __launch_bounds__(block_size)
    pair_softmax_kernel(AttentionShape s, const float* scores, float* probabilities) {
  const std::size_t query = blockIdx.x % s.queries, begin = blockIdx.x * s.keys;
  const std::size_t end = query + 1 + s.keys;
  const std::size_t seen = !s.causal ? s.keys : end > s.queries ? end - s.queries : 0;
  float largest = -INFINITY;
  for (std::size_t j = threadIdx.x; j < seen; j += blockDim.x)
    largest = Larger{}(largest, s.scale * scores[begin + j]);
  largest = block_max(largest);
  double sum = 0;
  for (std::size_t j = threadIdx.x; j < seen; j += blockDim.x)
    sum += wide(expf(s.scale * scores[begin + j] - largest));
  sum = block_sum(sum);
  for (std::size_t j = threadIdx.x; j < s.keys; j += blockDim.x)
    probabilities[begin + j] =
        j < seen ? static_cast<float>(wide(expf(s.scale * scores[begin + j] - largest)) / sum)
                 : 0.0F;
}

__global__ void __launch_bounds__(block_size)
    pair_softmax_backward_kernel(AttentionShape s, const float* probabilities,
                                 const float* gradient, float* scores_gradient) {
  const std::size_t begin = blockIdx.x * s.keys;
  double all = 0;
  for (std::size_t j = threadIdx.x; j < s.keys; j += blockDim.x)
    all += wide(probabilities[begin + j]) * wide(gradient[begin + j]);
  all = block_sum(all);
  for (std::size_t j = threadIdx.x; j < s.keys; j += blockDim.x)
    scores_gradient[begin + j] = static_cast<float>(wide(s.scale) * wide(probabilities[begin + j]) *
                                                    (wide(gradient[begin + j]) - all));
}

void check(const AttentionShape& s, std::size_t pairs, std::size_t x, std::size_t y) {
  ASSERT(s.key_heads > 0 && s.heads % s.key_heads == 0 && pairs == pair_count(s));
  ASSERT(x == s.query_numbers() && y == s.key_numbers());
}

}  // namespace

void attention_pairs(DeviceStream stream, const AttentionShape& shape, std::span<const float> x,
                     std::span<const float> y, std::span<float> pairs) {
  check(shape, pairs.size(), x.size(), y.size());
  if (pairs.empty()) return;
  launch(stream, {grid_for(pairs.size())}, pairs_kernel, shape, x.data(), y.data(), pairs.data(),
         pairs.size());
}

void attention_over_keys(DeviceStream stream, const AttentionShape& shape,
                         std::span<const float> pairs, std::span<const float> y,
                         std::span<float> x) {
  check(shape, pairs.size(), x.size(), y.size());
  if (x.empty()) return;
  launch(stream, {grid_for(x.size())}, over_keys_kernel, shape, pairs.data(), y.data(), x.data(),
         x.size());
}

void attention_over_queries(DeviceStream stream, const AttentionShape& shape,
                            std::span<const float> pairs, std::span<const float> x,
                            std::span<float> y) {
  check(shape, pairs.size(), x.size(), y.size());
  if (y.empty()) return;
  launch(stream, {grid_for(y.size())}, over_queries_kernel, shape, pairs.data(), x.data(), y.data(),
         y.size());
}

void attention_softmax(DeviceStream stream, const AttentionShape& shape,
                       std::span<const float> scores, std::span<float> probabilities) {
  ASSERT(scores.size() == pair_count(shape) && probabilities.size() == scores.size());
  if (scores.empty()) return;
  launch(stream, row_launch({shape.score_rows(), shape.keys}), pair_softmax_kernel, shape,
         scores.data(), probabilities.data());
}

void attention_softmax_backward(DeviceStream stream, const AttentionShape& shape,
                                std::span<const float> probabilities,
                                std::span<const float> gradient, std::span<float> scores_gradient) {
  ASSERT(probabilities.size() == pair_count(shape) && gradient.size() == probabilities.size());
  ASSERT(scores_gradient.size() == probabilities.size());
  if (probabilities.empty()) return;
  launch(stream, row_launch({shape.score_rows(), shape.keys}), pair_softmax_backward_kernel, shape,
         probabilities.data(), gradient.data(), scores_gradient.data());
}

}  // namespace rehearse
