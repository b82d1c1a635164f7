// Attention against the formula written out in fp64, all its gradients against differences of it.
#include "kernels/math/attention.hpp"

#include <limits>

#include "kernels/math/softmax.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::attention_test {
namespace {

Doubles attention_plain(const AttentionShape& s, const Doubles& q, const Doubles& k,
                        const Doubles& v) {
  Doubles y(s.query_numbers());
  for (std::size_t b = 0; b < s.batch; ++b)
    for (std::size_t h = 0; h < s.heads; ++h)
      for (std::size_t i = 0; i < s.queries; ++i) {
        const std::size_t kh = h * s.key_heads / s.heads;
        const auto q_at = [&](std::size_t d) {
          return ((b * s.queries + i) * s.heads + h) * s.width + d;
        };
        const auto k_at = [&](std::size_t j, std::size_t d) {
          return ((b * s.keys + j) * s.key_heads + kh) * s.width + d;
        };
        Doubles weights;
        double sum = 0;
        for (std::size_t j = 0; j < s.keys; ++j) {
          double score = 0;
          for (std::size_t d = 0; d < s.width; ++d) score += q[q_at(d)] * k[k_at(j, d)];
          const bool seen = !s.causal || j + s.queries <= i + s.keys;
          weights.push_back(seen ? std::exp(score * static_cast<double>(s.scale)) : 0);
          sum += weights.back();
        }
        for (std::size_t j = 0; j < s.keys && sum > 0; ++j)
          for (std::size_t d = 0; d < s.width; ++d) y[q_at(d)] += weights[j] / sum * v[k_at(j, d)];
      }
  return y;
}

struct Case {
  AttentionShape shape;
  Floats q, k, v, dy, y, log_sums, dq, dk, dv;

  Case(const AttentionShape& s, std::uint64_t seed) : shape{s} {
    SeededNumbers numbers(seed);
    q = numbers.floats(s.query_numbers());
    k = numbers.floats(s.key_numbers());
    v = numbers.floats(s.key_numbers());
    dy = numbers.floats(s.query_numbers());
    y = dq = Floats(s.query_numbers(), 9.0F);
    dk = dv = Floats(s.key_numbers(), 9.0F);
    log_sums = Floats(s.score_rows());
  }
  void run() {
    attention(shape, {q, k, v}, y, log_sums);
    attention_backward(shape, {q, k, v}, y, log_sums, dy, {dq, dk, dv});
  }
};

std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> all{
      {.batch = 0, .queries = 3, .keys = 3, .heads = 1, .key_heads = 1, .width = 2},
      {.batch = 1, .queries = 0, .keys = 3, .heads = 1, .key_heads = 1, .width = 2},
      {.batch = 1, .queries = 3, .keys = 0, .heads = 1, .key_heads = 1, .width = 2},
      {.batch = 1, .queries = 1, .keys = 1, .heads = 1, .key_heads = 1, .width = 1},
      {.batch = 2, .queries = 5, .keys = 5, .heads = 2, .key_heads = 2, .width = 3, .scale = 0.5F},
      {.batch = 1, .queries = 4, .keys = 4, .heads = 4, .key_heads = 2, .width = 3, .scale = 0.7F},
      {.batch = 2, .queries = 3, .keys = 7, .heads = 6, .key_heads = 2, .width = 2, .scale = 0.6F},
      {.batch = 1, .queries = 7, .keys = 3, .heads = 3, .key_heads = 1, .width = 5, .scale = 0.4F},
  };
  SeededNumbers numbers(60);
  for (int i = 0; i < 8; ++i) {
    const std::size_t key_heads = 1 + numbers.below(3);
    all.push_back({.batch = 1 + numbers.below(2),
                   .queries = numbers.below(6),
                   .keys = numbers.below(6),
                   .heads = key_heads * (1 + numbers.below(3)),
                   .key_heads = key_heads,
                   .width = 1 + numbers.below(5),
                   .scale = static_cast<float>(numbers.between(0.2, 0.8))});
  }
  return all;
}

TEST(Attention, ForwardAndBackward) {
  for (AttentionShape shape : shapes()) {
    for (const bool causal : {false, true}) {
      shape.causal = causal;
      Case it(shape, 61);
      it.run();
      const Doubles q = widen(it.q), k = widen(it.k), v = widen(it.v);
      expect_close(it.y, attention_plain(shape, q, k, v), 1e-6);
      const auto loss = [&](const Doubles& a, const Doubles& b, const Doubles& c) {
        return dot(attention_plain(shape, a, b, c), it.dy);
      };
      expect_close(it.dq, numeric_gradient([&](const Doubles& at) { return loss(at, k, v); }, q),
                   5e-6);
      expect_close(it.dk, numeric_gradient([&](const Doubles& at) { return loss(q, at, v); }, k),
                   5e-6);
      expect_close(it.dv, numeric_gradient([&](const Doubles& at) { return loss(q, k, at); }, v),
                   5e-6);
    }
  }
}

TEST(Attention, TheFirstCausalQuerySeesOneKeyTheLastAll) {
  AttentionShape shape{
      .batch = 1, .queries = 4, .keys = 4, .heads = 1, .key_heads = 1, .width = 2, .causal = true};
  Case it(shape, 62);
  it.run();
  EXPECT_EQ(it.y[0], it.v[0]);
  EXPECT_EQ(it.y[1], it.v[1]);
  shape.causal = false;
  Case all(shape, 62);
  all.run();
  EXPECT_EQ(it.y[6], all.y[6]);
  EXPECT_NE(it.y[4], all.y[4]);
}

TEST(Attention, AQueryThatSeesNothingGivesZeros) {
  Case it(
      {.batch = 1, .queries = 3, .keys = 1, .heads = 1, .key_heads = 1, .width = 2, .causal = true},
      63);
  it.run();
  EXPECT_EQ((Floats{it.y.begin(), it.y.begin() + 4}), Floats(4));
  EXPECT_EQ((Floats{it.dq.begin(), it.dq.begin() + 4}), Floats(4));
  EXPECT_EQ(it.log_sums[0], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(it.y[4], it.v[0]);
}

TEST(Attention, GroupedHeadsAreHeadsWithTheirKeysRepeated) {
  const AttentionShape grouped{
      .batch = 2, .queries = 5, .keys = 5, .heads = 4, .key_heads = 2, .width = 3, .causal = true};
  AttentionShape repeated = grouped;
  repeated.key_heads = 4;
  Case few(grouped, 64), many(repeated, 64);
  many.q = few.q;
  for (std::size_t row = 0; row < 10; ++row)
    for (std::size_t h = 0; h < 4; ++h)
      for (std::size_t d = 0; d < 3; ++d) {
        many.k[(row * 4 + h) * 3 + d] = few.k[(row * 2 + h / 2) * 3 + d];
        many.v[(row * 4 + h) * 3 + d] = few.v[(row * 2 + h / 2) * 3 + d];
      }
  few.run();
  many.run();
  EXPECT_EQ(bits(few.y), bits(many.y));
}

TEST(Attention, SurvivesGreatScores) {
  AttentionShape shape{.batch = 1, .queries = 2, .keys = 2, .heads = 1, .key_heads = 1, .width = 1};
  Case it(shape, 65);
  it.q = {1e10F, -1e10F};
  it.k = {1e10F, -1e10F};
  it.run();
  EXPECT_EQ(it.y, it.v);
  for (const float value : it.dq) EXPECT_TRUE(std::isfinite(value));
}

TEST(Attention, HeadsMustShareKeysEvenly) {
  Case it({.batch = 1, .queries = 1, .keys = 1, .heads = 3, .key_heads = 2, .width = 1}, 66);
  EXPECT_THROW(it.run(), std::logic_error);
}

}  // namespace
}  // namespace rehearse::attention_test
