// One query of one head at a time; sums in fp64 in the order of keys, then heads, then queries.
#include "kernels/math/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

constexpr float masked_row = -std::numeric_limits<float>::infinity();

// Where the numbers of one query head, and of the key head that it reads, lie.
class HeadView {
 public:
  HeadView(const AttentionShape& shape, std::size_t batch, std::size_t head)
      : shape_{shape},
        batch_{batch},
        head_{head},
        key_head_{head / (shape.heads / shape.key_heads)} {}

  std::size_t query(std::size_t i) const {
    return ((batch_ * shape_.queries + i) * shape_.heads + head_) * shape_.width;
  }
  std::size_t key(std::size_t j) const {
    return ((batch_ * shape_.keys + j) * shape_.key_heads + key_head_) * shape_.width;
  }
  std::size_t row(std::size_t i) const {
    return (batch_ * shape_.heads + head_) * shape_.queries + i;
  }
  /// How many keys query i sees.
  std::size_t visible(std::size_t i) const {
    if (!shape_.causal) return shape_.keys;
    const std::size_t end = i + 1 + shape_.keys;
    return end > shape_.queries ? end - shape_.queries : 0;
  }

 private:
  const AttentionShape& shape_;
  std::size_t batch_, head_, key_head_;
};

template <class Body>
void for_each_head(const AttentionShape& shape, Body body) {
  for (std::size_t b = 0; b < shape.batch; ++b)
    for (std::size_t h = 0; h < shape.heads; ++h) body(HeadView{shape, b, h});
}

void check(const AttentionShape& shape, const AttentionInputs& inputs) {
  ASSERT(shape.heads == 0 || (shape.key_heads > 0 && shape.heads % shape.key_heads == 0));
  ASSERT(inputs.queries.size() == shape.query_numbers());
  ASSERT(inputs.keys.size() == shape.key_numbers());
  ASSERT(inputs.values.size() == shape.key_numbers());
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void add_multiple(double factor, std::span<const float> x, std::span<double> sum) {
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] += factor * static_cast<double>(x[i]);
}

void store(std::span<const double> from, std::span<float> to) {
  std::ranges::transform(from, to.begin(), [](double value) { return static_cast<float>(value); });
}

// Fills `scores`, one for each visible key.
void scores_of(const AttentionShape& shape, const AttentionInputs& inputs, const HeadView& head,
               std::size_t query, std::span<double> scores) {
  const auto q = inputs.queries.subspan(head.query(query), shape.width);
  for (std::size_t j = 0; j < scores.size(); ++j)
    scores[j] =
        static_cast<double>(shape.scale) * dot(q, inputs.keys.subspan(head.key(j), shape.width));
}

}  // namespace

void attention(const AttentionShape& shape, const AttentionInputs& inputs, std::span<float> y,
               std::span<float> log_sums) {
  check(shape, inputs);
  ASSERT(y.size() == shape.query_numbers() && log_sums.size() == shape.score_rows());
  std::vector<double> row(shape.keys), output(shape.width);
  for_each_head(shape, [&](const HeadView& head) {
    for (std::size_t i = 0; i < shape.queries; ++i) {
      const std::span scores = std::span{row}.first(head.visible(i));
      scores_of(shape, inputs, head, i, scores);
      std::ranges::fill(output, 0.0);
      log_sums[head.row(i)] = masked_row;
      if (!scores.empty()) {
        const double largest = *std::ranges::max_element(scores);
        double sum = 0;
        for (double& score : scores) sum += score = std::exp(score - largest);
        for (std::size_t j = 0; j < scores.size(); ++j)
          add_multiple(scores[j] / sum, inputs.values.subspan(head.key(j), shape.width), output);
        log_sums[head.row(i)] = static_cast<float>(largest + std::log(sum));
      }
      store(output, y.subspan(head.query(i), shape.width));
    }
  });
}

void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs,
                        std::span<const float> y, std::span<const float> log_sums,
                        std::span<const float> y_gradient, const AttentionGradients& gradients) {
  check(shape, inputs);
  ASSERT(y.size() == shape.query_numbers() && log_sums.size() == shape.score_rows());
  ASSERT(y_gradient.size() == y.size() && gradients.queries.size() == y.size());
  ASSERT(gradients.keys.size() == shape.key_numbers());
  ASSERT(gradients.values.size() == shape.key_numbers());
  std::vector<double> row(shape.keys), dq(shape.width);
  // All queries of all heads of a group add to the same keys.
  std::vector<double> dk(shape.key_numbers()), dv(shape.key_numbers());
  for_each_head(shape, [&](const HeadView& head) {
    for (std::size_t i = 0; i < shape.queries; ++i) {
      const std::span scores = std::span{row}.first(head.visible(i));
      scores_of(shape, inputs, head, i, scores);
      const auto q = inputs.queries.subspan(head.query(i), shape.width);
      const auto dy = y_gradient.subspan(head.query(i), shape.width);
      const double all = dot(y.subspan(head.query(i), shape.width), dy);
      std::ranges::fill(dq, 0.0);
      for (std::size_t j = 0; j < scores.size(); ++j) {
        const std::size_t at = head.key(j);
        const double p = std::exp(scores[j] - static_cast<double>(log_sums[head.row(i)]));
        const double ds = static_cast<double>(shape.scale) * p *
                          (dot(dy, inputs.values.subspan(at, shape.width)) - all);
        add_multiple(ds, inputs.keys.subspan(at, shape.width), dq);
        add_multiple(ds, q, std::span{dk}.subspan(at, shape.width));
        add_multiple(p, dy, std::span{dv}.subspan(at, shape.width));
      }
      store(dq, gradients.queries.subspan(head.query(i), shape.width));
    }
  });
  store(dk, gradients.keys);
  store(dv, gradients.values);
}

}  // namespace rehearse
