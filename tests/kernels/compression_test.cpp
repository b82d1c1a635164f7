// What compressed gradients are made of: selection against sorting, nothing lost between steps.
#include <limits>
#include <numeric>

#include "kernels/math/deep_gradient_compression.hpp"
#include "kernels/math/gradient_norm.hpp"
#include "kernels/math/int8_gradients.hpp"
#include "kernels/math/sparse.hpp"
#include "kernels/math/top_k.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::compression_test {
namespace {

using Indices = std::vector<std::uint32_t>;

// By sorting: greater magnitudes first, of equals the first in memory.
Indices by_sorting(const Floats& values, std::size_t k) {
  Indices order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(
      order, [&](auto a, auto b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(std::min(k, order.size()));
  std::ranges::sort(order);
  return order;
}

TEST(TopK, IsWhatSortingGives) {
  SeededNumbers numbers(81);
  for (const std::size_t n : lengths()) {
    Floats values = numbers.floats(n);
    // Few different numbers: ties in plenty.
    Floats coarse = values;
    for (float& value : coarse) value = std::round(value);
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, n / 100 + 1, n / 2, n, n + 5}) {
      ASSERT_EQ(top_k(values, k), by_sorting(values, k)) << n << " " << k;
      ASSERT_EQ(top_k(coarse, k), by_sorting(coarse, k)) << n << " " << k;
    }
  }
}

TEST(TopK, ThresholdIsTheKthMagnitude) {
  const Floats values{1, -5, 3, -3, 0};
  EXPECT_EQ(exact_threshold(values, 1), 5);
  EXPECT_EQ(exact_threshold(values, 2), 3);
  EXPECT_EQ(exact_threshold(values, 3), 3);
  EXPECT_EQ(exact_threshold(values, 5), 0);
  EXPECT_EQ(top_k(values, 2), (Indices{1, 2}));
  EXPECT_EQ(select_above(values, 3, 9), (Indices{1, 2, 3}));
  EXPECT_EQ(select_above(values, 0.5F, 2), (Indices{1, 2}));  // too many: the largest of them
  EXPECT_EQ(select_above(values, 0.5F, 0), Indices{});
  EXPECT_EQ(select_above(values, 6, 3), Indices{});
  EXPECT_THROW(exact_threshold(values, 0), std::logic_error);
  EXPECT_THROW(exact_threshold(values, 6), std::logic_error);
}

TEST(TopK, ANanIsNeverHidden) {
  const Floats values{1, std::numeric_limits<float>::quiet_NaN(), 3};
  EXPECT_EQ(top_k(values, 1), (Indices{1}));
}

TEST(TopK, ASampleOfAllIsExact) {
  SeededNumbers numbers(82);
  for (const std::size_t n : {1U, 2U, 65U, 1000U}) {
    const Floats values = numbers.floats(n);
    for (const std::size_t k : {std::size_t{1}, (n + 1) / 2, n})
      EXPECT_EQ(sampled_threshold(values, k, n, {1, 2}), exact_threshold(values, k));
  }
}

TEST(TopK, ASampleOfOnePercentSelectsAboutAsMany) {
  // DGC: 1 % of the numbers tell the threshold of the largest 1 %.
  SeededNumbers numbers(83);
  const Floats values = numbers.floats(200'000);
  const std::size_t k = 2'000, sample = 2'000;
  const float threshold = sampled_threshold(values, k, sample, {.seed = 3, .stream = 4});
  EXPECT_EQ(threshold, sampled_threshold(values, k, sample, {.seed = 3, .stream = 4}));
  EXPECT_NE(threshold, sampled_threshold(values, k, sample, {.seed = 3, .stream = 5}));
  const auto above = static_cast<double>(select_above(values, threshold, values.size()).size());
  // The rank of the 20th of 2,000 in 200,000: 2,000 with a deviation of 100 · √20.
  EXPECT_NEAR(above, 2'000, 5 * 100 * std::sqrt(20.0));
  EXPECT_LE(select_above(values, threshold, k).size(), k);
}

TEST(Sparse, GatherScatterAndClear) {
  const Floats source{10, 11, 12, 13, 14};
  const Indices indices{3, 0, 3};
  Floats gathered(3), target(5, 1.0F);
  sparse_gather(source, indices, gathered);
  EXPECT_EQ(gathered, (Floats{13, 10, 13}));
  sparse_scatter_add(gathered, indices, target);
  EXPECT_EQ(target, (Floats{11, 1, 1, 27, 1}));
  sparse_clear(indices, target);
  EXPECT_EQ(target, (Floats{0, 1, 1, 0, 1}));
  EXPECT_THROW(sparse_gather(source, Indices{5}, std::span{gathered}.first(1)), std::logic_error);
  EXPECT_THROW(sparse_scatter_add(Floats{1}, Indices{5}, target), std::logic_error);
  EXPECT_THROW(sparse_clear(Indices{5}, target), std::logic_error);
}

TEST(Sparse, ScatterIsTheBackwardOfGather) {
  SeededNumbers numbers(84);
  const Floats x = numbers.floats(9), dy = numbers.floats(5);
  const Indices indices{8, 2, 2, 0, 5};
  const Doubles wanted = numeric_gradient(
      [&](const Doubles& at) {
        Doubles y;
        for (const std::uint32_t index : indices) y.push_back(at[index]);
        return dot(y, dy);
      },
      widen(x));
  Floats dx(9);
  sparse_scatter_add(dy, indices, dx);
  expect_close(dx, wanted, 1e-6);
}

// The paper's algorithm 1 with momentum correction, for one rank, in fp64 and without kernels.
TEST(DeepGradientCompression, IsThePapersAlgorithm) {
  constexpr std::size_t n = 50, k = 5, ranks = 4;
  constexpr double momentum = 0.5, limit = 3;
  SeededNumbers numbers(85);
  Floats u(n), v(n);
  Doubles pu(n), pv(n);
  for (int round = 0; round < 20; ++round) {
    Floats g = numbers.floats(n);
    Doubles pg = widen(g);
    double norm = 0;
    for (const double x : pg) norm += x * x;
    const double factor = std::min(1.0, limit / std::sqrt(double{ranks}) / std::sqrt(norm));
    for (std::size_t i = 0; i < n; ++i) {
      pu[i] = momentum * pu[i] + factor * pg[i];
      pv[i] += pu[i];
    }
    EXPECT_NEAR(static_cast<double>(clip_locally(g, limit, ranks)), factor, 1e-7);
    correct_momentum(g, momentum, {u, v});
    expect_close(v, pv, 1e-5);
    const Indices indices = top_k(v, k);
    Floats sent(k);
    take_out({u, v}, indices, sent);
    for (std::size_t i = 0; i < k; ++i) {
      EXPECT_NEAR(static_cast<double>(sent[i]), pv[indices[i]], 1e-5);
      pu[indices[i]] = pv[indices[i]] = 0;
    }
    expect_close(u, pu, 1e-5);
    expect_close(v, pv, 1e-5);
  }
}

TEST(DeepGradientCompression, SmallGradientsAreNotClipped) {
  Floats g{0.3F, 0.4F};
  EXPECT_EQ(clip_locally(g, 1, 4), 1.0F);  // norm 0.5 = 1 / √4
  EXPECT_EQ(g, (Floats{0.3F, 0.4F}));
  EXPECT_FLOAT_EQ(clip_locally(g, 1, 16), 0.5F);
  EXPECT_FLOAT_EQ(g[1], 0.2F);
}

TEST(Int8Gradients, ErrorIsAtMostHalfAStep) {
  SeededNumbers numbers(86);
  for (const std::size_t n : lengths()) {
    const Floats x = numbers.floats(n);
    const float scale = int8_scale(x);
    std::vector<std::int8_t> codes(n);
    Floats back(n);
    quantize(x, scale, codes);
    dequantize(codes, scale, back);
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_LE(std::abs(back[i] - x[i]), 0.5F * scale * 1.00001F + 1e-12F);
    if (n > 0) {
      EXPECT_EQ(*std::ranges::max_element(codes, {}, [](int c) { return std::abs(c); }) % 127, 0);
    }
  }
}

TEST(Int8Gradients, RoundsToEvenAndStaysInside) {
  std::vector<std::int8_t> codes(7);
  quantize(Floats{0.5F, 1.5F, -2.5F, 126.6F, 127.4F, 1e30F, -1e30F}, 1, codes);
  EXPECT_EQ(codes, (std::vector<std::int8_t>{0, 2, -2, 127, 127, 127, -127}));
  quantize(Floats(7), int8_scale(Floats(7)), codes);
  EXPECT_EQ(codes, std::vector<std::int8_t>(7));
}

TEST(Int8Gradients, CodesOfRanksAddUpExactly) {
  const std::vector<std::int8_t> a{127, -127, 3}, b{127, -127, 4};
  std::vector<std::int32_t> sum(3);
  add_codes(a, sum);
  add_codes(b, sum);
  EXPECT_EQ(sum, (std::vector<std::int32_t>{254, -254, 7}));
  Floats x(3);
  dequantize(std::span<const std::int32_t>{sum}, 0.5F, x);
  EXPECT_EQ(x, (Floats{127, -127, 3.5F}));
}

TEST(GradientNorm, SquaresAndClipping) {
  EXPECT_EQ(sum_of_squares(Floats{}), 0);
  EXPECT_EQ(sum_of_squares(Floats{3, -4}), 25);
  EXPECT_EQ(sum_of_squares(Floats{3e30F, -4e30F}),  // beyond fp32
            std::pow(static_cast<double>(3e30F), 2) + std::pow(static_cast<double>(4e30F), 2));
  EXPECT_EQ(clip_factor(2, 1), 0.5F);
  EXPECT_EQ(clip_factor(1, 1), 1.0F);
  EXPECT_EQ(clip_factor(0.75, 1), 1.0F);  // it never enlarges
  EXPECT_EQ(clip_factor(0, 1), 1.0F);
  EXPECT_THROW(clip_factor(std::numeric_limits<double>::quiet_NaN(), 1), std::logic_error);
}

}  // namespace
}  // namespace rehearse::compression_test
