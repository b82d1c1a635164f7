// Every optimizer against its paper's formulas in fp64 over many steps, and however it is cut.
#include "kernels/math/optimizers.hpp"

#include "kernels/math/layerwise.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::optimizers_test {
namespace {

constexpr std::size_t steps = 30;
constexpr double factor = 0.125;  // a loss scale of 8, undone

// Weights and moments in fp32, and the paper's in fp64 beside them; a new gradient each step.
struct TwoRuns {
  Floats w, m, v, g;
  Doubles pw, pm, pv, pg;

  TwoRuns(std::size_t n, std::uint64_t seed) : m(n), v(n), pm(n), pv(n), numbers(seed) {
    w = numbers.floats(n);
    pw = widen(w);
  }
  Weights next(WeightCopy copy = {}) {
    g = numbers.floats(w.size(), -8, 8);
    pg = widen(g);
    for (double& x : pg) x *= factor;
    return {
        .master = w, .copy = copy, .gradient = g, .gradient_factor = static_cast<float>(factor)};
  }
  SeededNumbers numbers;
};

double norm(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

TEST(Optimizers, Sgd) {
  for (const std::size_t n : lengths()) {
    TwoRuns run(n, 91);
    const Sgd sgd{.rate = 0.01F, .decay = 0.1F};
    for (std::size_t t = 1; t <= steps; ++t) {
      sgd_step(sgd, run.next());
      for (std::size_t i = 0; i < n; ++i) run.pw[i] -= 0.01 * (run.pg[i] + 0.1 * run.pw[i]);
    }
    expect_close(run.w, run.pw, 1e-5);
  }
}

TEST(Optimizers, Momentum) {
  for (const bool nesterov : {false, true}) {
    for (const std::size_t n : lengths()) {
      TwoRuns run(n, 92);
      const Momentum settings{.rate = 0.01F, .momentum = 0.9F, .decay = 0.1F, .nesterov = nesterov};
      for (std::size_t t = 1; t <= steps; ++t) {
        momentum_step(settings, run.next(), run.m);
        for (std::size_t i = 0; i < n; ++i) {
          const double g = run.pg[i] + 0.1 * run.pw[i];
          run.pm[i] = 0.9 * run.pm[i] + g;
          run.pw[i] -= 0.01 * (nesterov ? g + 0.9 * run.pm[i] : run.pm[i]);
        }
      }
      expect_close(run.w, run.pw, 1e-5);
      expect_close(run.m, run.pm, 1e-5);
    }
  }
}

// Kingma and Ba, algorithm 1; Loshchilov and Hutter, algorithm 2.
TEST(Optimizers, AdamAndAdamW) {
  for (const bool decoupled : {false, true}) {
    for (const std::size_t n : lengths()) {
      TwoRuns run(n, 93);
      const Adam adam{.rate = 0.01F, .decay = 0.1F, .decoupled = decoupled};
      for (std::size_t t = 1; t <= steps; ++t) {
        adam_step(adam, run.next(), {run.m, run.v}, t);
        for (std::size_t i = 0; i < n; ++i) {
          const double g = run.pg[i] + (decoupled ? 0 : 0.1 * run.pw[i]);
          run.pm[i] = 0.9 * run.pm[i] + 0.1 * g;
          run.pv[i] = 0.999 * run.pv[i] + 0.001 * g * g;
          const double m = run.pm[i] / (1 - std::pow(0.9, static_cast<double>(t)));
          const double v = run.pv[i] / (1 - std::pow(0.999, static_cast<double>(t)));
          run.pw[i] -= 0.01 * (m / (std::sqrt(v) + 1e-8) + (decoupled ? 0.1 * run.pw[i] : 0));
        }
      }
      expect_close(run.w, run.pw, 2e-5);
    }
  }
}

TEST(Optimizers, TheFirstStepOfAdamIsTheRate) {
  Floats w{1, 1}, m(2), v(2);
  const Floats g{1e-3F, -50};
  adam_step({.rate = 0.01F}, {.master = w, .gradient = g}, {m, v}, 1);
  EXPECT_NEAR(w[0], 0.99, 1e-6);
  EXPECT_NEAR(w[1], 1.01, 1e-6);
  EXPECT_THROW(adam_step({}, {.master = w, .gradient = g}, {m, v}, 0), std::logic_error);
}

// You, Gitman and Ginsburg, algorithm 1.
TEST(Optimizers, Lars) {
  for (const std::size_t n : lengths()) {
    TwoRuns run(n, 94);
    const Lars lars{.rate = 1, .momentum = 0.9F, .decay = 0.01F, .trust = 0.02F};
    for (std::size_t t = 1; t <= steps; ++t) {
      const Weights weights = run.next();
      lars_step(lars, weights, run.m, lars_ratio(lars, lars_squares(weights)));
      if (n == 0) continue;
      const double local = 0.02 * norm(run.pw) / (norm(run.pg) + 0.01 * norm(run.pw));
      for (std::size_t i = 0; i < n; ++i) {
        run.pm[i] = 0.9 * run.pm[i] + local * (run.pg[i] + 0.01 * run.pw[i]);
        run.pw[i] -= run.pm[i];
      }
    }
    expect_close(run.w, run.pw, 2e-5);
  }
}

// You et al. 2020, algorithm 2.
TEST(Optimizers, Lamb) {
  for (const std::size_t n : lengths()) {
    TwoRuns run(n, 95);
    const Lamb lamb{.rate = 0.01F, .decay = 0.01F};
    Floats update(n);
    for (std::size_t t = 1; t <= steps; ++t) {
      const Weights weights = run.next();
      const LayerSquares squares = lamb_update(lamb, weights, {run.m, run.v}, t, update);
      lamb_apply(lamb, weights, update, lamb_ratio(squares));
      if (n == 0) continue;
      Doubles r(n);
      for (std::size_t i = 0; i < n; ++i) {
        run.pm[i] = 0.9 * run.pm[i] + 0.1 * run.pg[i];
        run.pv[i] = 0.999 * run.pv[i] + 0.001 * run.pg[i] * run.pg[i];
        const double m = run.pm[i] / (1 - std::pow(0.9, static_cast<double>(t)));
        const double v = run.pv[i] / (1 - std::pow(0.999, static_cast<double>(t)));
        r[i] = m / (std::sqrt(v) + 1e-6) + 0.01 * run.pw[i];
      }
      const double ratio = norm(run.pw) / norm(r);
      for (std::size_t i = 0; i < n; ++i) run.pw[i] -= 0.01 * ratio * r[i];
    }
    expect_close(run.w, run.pw, 2e-5);
  }
}

TEST(Optimizers, AZeroNormLeavesTheRateAlone) {
  EXPECT_EQ(lars_ratio({}, {0, 1}), 1);
  EXPECT_EQ(lars_ratio({}, {1, 0}), 1);
  EXPECT_EQ(lamb_ratio({0, 1}), 1);
  EXPECT_EQ(lamb_ratio({1, 0}), 1);
  EXPECT_EQ(lamb_ratio({16, 4}), 2);
}

TEST(Optimizers, CopiesAreTheRoundedMaster) {
  TwoRuns run(65, 96);
  std::vector<Bf16> brain(65);
  std::vector<Fp16> half(65);
  momentum_step({.rate = 0.1F}, run.next(std::span{brain}), run.m);
  for (std::size_t i = 0; i < 65; ++i) ASSERT_EQ(brain[i], to_bf16(run.w[i]));
  adam_step({.rate = 0.1F}, run.next(std::span{half}), {run.m, run.v}, 1);
  for (std::size_t i = 0; i < 65; ++i) ASSERT_EQ(half[i], to_fp16(run.w[i]));
  sgd_step({.rate = 0.1F}, run.next(std::span{half}));
  for (std::size_t i = 0; i < 65; ++i) ASSERT_EQ(half[i], to_fp16(run.w[i]));
  // Changes too small for 16 bits survive in the master: that is what it is for.
  Floats w{1.0F};
  const Floats g{1e-5F};
  std::vector<Bf16> copy(1);
  for (int t = 0; t < 1000; ++t)
    sgd_step({.rate = 1}, {.master = w, .copy = std::span{copy}, .gradient = g});
  EXPECT_NEAR(w[0], 0.99, 1e-4);
  EXPECT_NEAR(to_float(copy[0]), 0.99, 0.004);
}

TEST(Optimizers, ShardsGiveTheSameBits) {
  constexpr std::size_t n = 101;
  TwoRuns whole(n, 97), parts(n, 97);
  Floats update(n), part_update(n);
  for (std::size_t t = 1; t <= 5; ++t) {
    const Weights all = whole.next(), same = parts.next();
    adam_step({.rate = 0.01F, .decay = 0.1F}, all, {whole.m, whole.v}, t);
    const LayerSquares squares = lamb_update({.rate = 0.1F}, all, {whole.m, whole.v}, t, update);
    lamb_apply({.rate = 0.1F}, all, update, 0.5F);
    LayerSquares sum;
    for (const auto& [first, count] : {std::pair{0U, 1U}, {1U, 0U}, {1U, 33U}, {34U, 67U}}) {
      const auto shard = [from = first, size = count](Floats& x) {
        return std::span{x}.subspan(from, size);
      };
      const Weights some{.master = shard(parts.w),
                         .gradient = same.gradient.subspan(first, count),
                         .gradient_factor = same.gradient_factor};
      const Moments moments{shard(parts.m), shard(parts.v)};
      adam_step({.rate = 0.01F, .decay = 0.1F}, some, moments, t);
      sum += lamb_update({.rate = 0.1F}, some, moments, t, shard(part_update));
      lamb_apply({.rate = 0.1F}, some, shard(part_update), 0.5F);
    }
    EXPECT_EQ(bits(parts.w), bits(whole.w));
    EXPECT_EQ(bits(parts.m), bits(whole.m));
    EXPECT_EQ(bits(parts.v), bits(whole.v));
    EXPECT_NEAR(sum.weights, squares.weights, 1e-12 * squares.weights);
    EXPECT_NEAR(sum.other, squares.other, 1e-12 * squares.other);
  }
}

}  // namespace
}  // namespace rehearse::optimizers_test
