// Softmax and cross-entropy against their formulas in fp64; ignored rows, masked rows, great
// logits.
#include "kernels/math/softmax.hpp"

#include <limits>

#include "kernels/math/cross_entropy.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::softmax_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

Doubles softmax_plain(const Doubles& x, RowShape shape) {
  Doubles y(x.size());
  for (std::size_t r = 0; r < shape.rows; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < shape.width; ++c) sum += std::exp(x[r * shape.width + c]);
    for (std::size_t c = 0; c < shape.width; ++c)
      y[r * shape.width + c] = std::exp(x[r * shape.width + c]) / sum;
  }
  return y;
}

double loss_plain(const Doubles& x, const std::vector<Token>& targets, RowShape shape) {
  const Doubles probabilities = softmax_plain(x, shape);
  double sum = 0;
  for (std::size_t r = 0; r < shape.rows; ++r)
    if (targets[r] != ignored_token)
      sum -= std::log(probabilities[r * shape.width + static_cast<std::size_t>(targets[r])]);
  return sum;
}

TEST(Softmax, ForwardAndBackward) {
  SeededNumbers numbers(41);
  for (const RowShape shape : row_shapes()) {
    const Floats x = numbers.floats(shape.size(), -5, 5), dy = numbers.floats(shape.size());
    Floats y(shape.size()), dx(shape.size());
    softmax(x, shape, y);
    softmax_backward(dy, y, shape, dx);
    expect_close(y, softmax_plain(widen(x), shape), 1e-7);
    expect_close(
        dx,
        numeric_gradient([&](const Doubles& at) { return dot(softmax_plain(at, shape), dy); },
                         widen(x)),
        1e-6);
    Floats in_place = x;
    softmax(in_place, shape, in_place);
    EXPECT_EQ(bits(in_place), bits(y));
  }
}

TEST(Softmax, GreatAndMaskedNumbers) {
  const Floats x{1e30F, 1e30F, -1e30F, -infinity, 0, 0, -infinity, -infinity, -infinity};
  Floats y(9);
  softmax(x, {3, 3}, y);
  EXPECT_EQ(y, (Floats{0.5F, 0.5F, 0, 0, 0.5F, 0.5F, 0, 0, 0}));
  EXPECT_EQ(exp_sum(Floats{}).sum, 0);
  EXPECT_EQ(exp_sum(Floats{1000, 1000}).largest, 1000);
  EXPECT_EQ(exp_sum(Floats{1000, 1000}).sum, 2);
  const Floats broken{0, std::numeric_limits<float>::quiet_NaN(), 1};
  softmax(broken, {1, 3}, std::span{y}.first(3));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[i])) << "a NaN is never hidden";
  const Floats hidden{std::numeric_limits<float>::quiet_NaN(), -infinity, -infinity};
  EXPECT_TRUE(std::isnan(exp_sum(hidden).sum));
}

TEST(CrossEntropy, ForwardAndBackward) {
  SeededNumbers numbers(42);
  for (const RowShape shape : row_shapes()) {
    if (shape.width == 0) continue;  // no class to aim at
    const Floats logits = numbers.floats(shape.size(), -5, 5);
    std::vector<Token> targets;
    std::size_t counted = 0;
    for (std::size_t r = 0; r < shape.rows; ++r) {
      const bool ignored = numbers.below(3) == 0;
      targets.push_back(ignored ? ignored_token : static_cast<Token>(numbers.below(shape.width)));
      counted += ignored ? 0 : 1;
    }
    Floats losses(shape.rows, 9.0F), gradient(shape.size());
    const LossSum loss = cross_entropy(logits, targets, shape, losses);
    EXPECT_EQ(loss.counted, counted);
    EXPECT_NEAR(loss.sum, loss_plain(widen(logits), targets, shape), 1e-10);
    double sum = 0;
    for (std::size_t r = 0; r < shape.rows; ++r) {
      sum += static_cast<double>(losses[r]);
      if (targets[r] == ignored_token) {
        EXPECT_EQ(losses[r], 0);
      }
    }
    EXPECT_NEAR(sum, loss.sum, 1e-5);
    constexpr float scale = 0.25F;
    cross_entropy_backward(logits, targets, shape, scale, gradient);
    expect_close(gradient,
                 numeric_gradient(
                     [&](const Doubles& at) {
                       return static_cast<double>(scale) * loss_plain(at, targets, shape);
                     },
                     widen(logits)),
                 1e-7);
  }
}

TEST(CrossEntropy, RowsWithoutATargetHaveNoGradient) {
  const Floats logits{1, 2, 3, infinity, 5, 6};
  const std::vector<Token> targets{Token{2}, ignored_token};
  Floats gradient(6, 7.0F), losses(2);
  EXPECT_EQ(cross_entropy(logits, targets, {2, 3}, losses).counted, 1U);
  cross_entropy_backward(logits, targets, {2, 3}, 1, gradient);
  EXPECT_EQ((Floats{gradient.begin() + 3, gradient.end()}), Floats(3));
  EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-7);
}

TEST(CrossEntropy, TheSameLogitsEverywhereCostTheLogarithmOfTheClasses) {
  const Floats logits(1000, 1e30F);
  Floats losses(1);
  const LossSum loss = cross_entropy(logits, std::vector{Token{17}}, {1, 1000}, losses);
  EXPECT_NEAR(loss.sum, std::log(1000.0), 1e-12);
}

TEST(CrossEntropy, ATargetOutsideIsOurMistake) {
  const Floats logits(3);
  Floats losses(1);
  EXPECT_THROW(cross_entropy(logits, std::vector{Token{3}}, {1, 3}, losses), std::logic_error);
  EXPECT_THROW(cross_entropy(logits, std::vector{Token{-1}}, {1, 3}, losses), std::logic_error);
}

}  // namespace
}  // namespace rehearse::softmax_test
