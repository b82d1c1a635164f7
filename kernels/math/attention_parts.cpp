// One (query, key) pair of one head at a time.
#include "kernels/math/attention_parts.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

// Where the numbers of a pair lie: its place among the pairs, of its query and
// of its key.
template <class Visit>
void for_each_pair(const AttentionShape& s, Visit visit) {
  const std::size_t shared = s.heads / s.key_heads;
  for (std::size_t b = 0; b < s.batch; ++b)
    for (std::size_t h = 0; h < s.heads; ++h)
      for (std::size_t i = 0; i < s.queries; ++i)
        for (std::size_t j = 0; j < s.keys; ++j)
          visit(((b * s.heads + h) * s.queries + i) * s.keys + j,
                ((b * s.queries + i) * s.heads + h) * s.width,
                ((b * s.keys + j) * s.key_heads + h / shared) * s.width);
}

std::size_t pair_count(const AttentionShape& s) { return s.batch * s.heads * s.queries * s.keys; }

void check(const AttentionShape& s, std::size_t pairs, std::size_t x, std::size_t y) {
  ASSERT(s.key_heads > 0 && s.heads % s.key_heads == 0 && pairs == pair_count(s));
  ASSERT(x == s.query_numbers() && y == s.key_numbers());
}

double wide(float value) { return static_cast<double>(value); }

void round_into(std::span<const double> from, std::span<float> to) {
  std::ranges::transform(from, to.begin(), [](double value) { return static_cast<float>(value); });
}

}  // namespace

void attention_pairs(const AttentionShape& shape, std::span<const float> x,
                     std::span<const float> y, std::span<float> pairs) {
  check(shape, pairs.size(), x.size(), y.size());
  for_each_pair(shape, [&](std::size_t pair, std::size_t query, std::size_t key) {
    double sum = 0;
    for (std::size_t w = 0; w < shape.width; ++w) sum += wide(x[query + w]) * wide(y[key + w]);
    pairs[pair] = static_cast<float>(sum);
  });
}

void attention_over_keys(const AttentionShape& shape, std::span<const float> pairs,
                         std::span<const float> y, std::span<float> x) {
  check(shape, pairs.size(), x.size(), y.size());
  std::vector<double> sums(x.size());
  for_each_pair(shape, [&](std::size_t pair, std::size_t query, std::size_t key) {
    for (std::size_t w = 0; w < shape.width; ++w)
      sums[query + w] += wide(pairs[pair]) * wide(y[key + w]);
  });
  round_into(sums, x);
}

void attention_over_queries(const AttentionShape& shape, std::span<const float> pairs,
                            std::span<const float> x, std::span<float> y) {
  check(shape, pairs.size(), x.size(), y.size());
  std::vector<double> sums(y.size());
  for_each_pair(shape, [&](std::size_t pair, std::size_t query, std::size_t key) {
    for (std::size_t w = 0; w < shape.width; ++w)
      sums[key + w] += wide(pairs[pair]) * wide(x[query + w]);
  });
  round_into(sums, y);
}

void attention_softmax(const AttentionShape& shape, std::span<const float> scores,
                       std::span<float> probabilities) {
  ASSERT(scores.size() == pair_count(shape) && probabilities.size() == scores.size());
  for (std::size_t row = 0; row < shape.score_rows(); ++row) {
    const std::size_t query = row % shape.queries, begin = row * shape.keys;
    const std::size_t end = query + 1 + shape.keys;
    const std::size_t seen =
        !shape.causal ? shape.keys : (end > shape.queries ? end - shape.queries : 0);
    std::vector<double> powers(seen);
    double largest = 0, sum = 0;
    for (std::size_t j = 0; j < seen; ++j) {
      powers[j] = wide(shape.scale) * wide(scores[begin + j]);
      largest = j == 0 ? powers[j] : std::max(largest, powers[j]);
    }
    for (double& power : powers) sum += power = std::exp(power - largest);
    for (std::size_t j = 0; j < shape.keys; ++j)
      probabilities[begin + j] = j < seen ? static_cast<float>(powers[j] / sum) : 0;
  }
}

void attention_softmax_backward(const AttentionShape& shape, std::span<const float> probabilities,
                                std::span<const float> gradient, std::span<float> scores_gradient) {
  ASSERT(probabilities.size() == pair_count(shape) && gradient.size() == probabilities.size());
  ASSERT(scores_gradient.size() == probabilities.size());
  for (std::size_t row = 0; row < shape.score_rows(); ++row) {
    const std::size_t begin = row * shape.keys;
    double all = 0;
    for (std::size_t j = 0; j < shape.keys; ++j)
      all += wide(probabilities[begin + j]) * wide(gradient[begin + j]);
    for (std::size_t j = 0; j < shape.keys; ++j)
      scores_gradient[begin + j] = static_cast<float>(
          wide(shape.scale) * wide(probabilities[begin + j]) * (wide(gradient[begin + j]) - all));
  }
}

}  // namespace rehearse
