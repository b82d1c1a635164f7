// Curves against their formulas in fp64, slopes against central differences of those.
#include "kernels/math/activation.hpp"

#include <numbers>

#include "tests/kernels/numbers.hpp"

namespace rehearse::activation_test {
namespace {

double gelu(double x, GeluForm form) {
  if (form == GeluForm::erf) return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3));
  return x * (1 + std::tanh(inner)) / 2;
}
double silu_plain(double x) { return x / (1 + std::exp(-x)); }

Doubles with_bias(const Doubles& x, const Doubles& bias, RowShape shape, GeluForm form) {
  Doubles y;
  for (std::size_t i = 0; i < shape.size(); ++i)
    y.push_back(gelu(x[i] + bias[i % shape.width], form));
  return y;
}

TEST(Activation, BiasGeluForwardAndBackward) {
  SeededNumbers numbers(11);
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    for (const RowShape shape : row_shapes()) {
      const Floats x = numbers.floats(shape.size(), -4, 4), bias = numbers.floats(shape.width);
      const Floats dy = numbers.floats(shape.size()), before = numbers.floats(shape.width);
      Floats y(shape.size()), dx(shape.size()), db = before;
      bias_gelu(x, bias, shape, form, y);
      bias_gelu_backward(dy, x, bias, shape, form, dx, db);
      const Doubles wide = widen(x), wide_bias = widen(bias);
      expect_close(y, with_bias(wide, wide_bias, shape, form), 1e-6);
      expect_close(
          dx,
          numeric_gradient(
              [&](const Doubles& at) { return dot(with_bias(at, wide_bias, shape, form), dy); },
              wide),
          2e-6);
      Doubles bias_gradient = numeric_gradient(
          [&](const Doubles& at) { return dot(with_bias(wide, at, shape, form), dy); }, wide_bias);
      for (std::size_t c = 0; c < shape.width; ++c)
        bias_gradient[c] += static_cast<double>(before[c]);  // parameters' gradients accumulate
      expect_close(db, bias_gradient, 5e-6);
    }
  }
}

TEST(Activation, TheTwoGelusDifferByWhatIsKnown) {
  // The largest difference of the two forms is 4.73e-4, near |x| = 2.7.
  double largest = 0;
  for (int i = -600; i <= 600; ++i) {
    const Floats x{static_cast<float>(i) / 100}, bias{0.0F};
    Floats a(1), b(1);
    bias_gelu(x, bias, {1, 1}, GeluForm::tanh, a);
    bias_gelu(x, bias, {1, 1}, GeluForm::erf, b);
    largest = std::max(largest, std::abs(static_cast<double>(a[0]) - static_cast<double>(b[0])));
  }
  EXPECT_NEAR(largest, 4.73e-4, 1e-6);
}

TEST(Activation, FarOutTheCurvesAreLines) {
  const Floats x{-1e30F, -200.0F, 0.0F, 200.0F, 1e30F}, bias{0.0F}, ones(5, 1.0F);
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    Floats y(5), dx(5), db(1);
    bias_gelu(x, bias, {5, 1}, form, y);
    EXPECT_EQ(y, (Floats{0, 0, 0, 200, 1e30F}));
    bias_gelu_backward(ones, x, bias, {5, 1}, form, dx, db);
    EXPECT_EQ(dx, (Floats{0, 0, 0.5F, 1, 1}));
  }
  Floats y(5), dx(5);
  silu(x, y);
  EXPECT_EQ(y, (Floats{0, static_cast<float>(-200 / (1 + std::exp(200.0))), 0, 200, 1e30F}));
  silu_backward(ones, x, dx);
  EXPECT_NEAR(dx[1], 0, 1e-30);
  EXPECT_EQ(dx[2], 0.5F);
  EXPECT_EQ(dx[3], 1.0F);
}

TEST(Activation, AddBias) {
  const Floats x{1, 2, 3, 4, 5, 6}, bias{10, 20, 30};
  Floats y(6);
  add_bias(x, bias, {2, 3}, y);
  EXPECT_EQ(y, (Floats{11, 22, 33, 14, 25, 36}));
}

TEST(Activation, SiluForwardAndBackward) {
  SeededNumbers numbers(12);
  for (const std::size_t n : lengths()) {
    const Floats x = numbers.floats(n, -6, 6), dy = numbers.floats(n);
    Floats y(n), dx(n);
    silu(x, y);
    silu_backward(dy, x, dx);
    const auto plain = [](const Doubles& at) {
      Doubles result;
      for (const double value : at) result.push_back(silu_plain(value));
      return result;
    };
    expect_close(y, plain(widen(x)), 1e-7);
    // Other elements do not move: only the one in question is summed.
    for (std::size_t i = 0; i < n; ++i) {
      const Doubles slope = numeric_gradient(
          [&](const Doubles& at) { return dot(plain(at), std::span{dy}.subspan(i, 1)); },
          {static_cast<double>(x[i])});
      ASSERT_NEAR(static_cast<double>(dx[i]), slope[0], 1e-6);
    }
  }
}

TEST(Activation, SwigluForwardAndBackward) {
  SeededNumbers numbers(13);
  for (const std::size_t n : {0U, 1U, 5U, 64U, 65U}) {
    const Floats gate = numbers.floats(n, -6, 6), up = numbers.floats(n), dy = numbers.floats(n);
    Floats y(n), gate_gradient(n), up_gradient(n);
    swiglu(gate, up, y);
    swiglu_backward(dy, gate, up, gate_gradient, up_gradient);
    const auto plain = [&](const Doubles& g, const Doubles& u) {
      Doubles result;
      for (std::size_t i = 0; i < n; ++i) result.push_back(silu_plain(g[i]) * u[i]);
      return result;
    };
    const Doubles g = widen(gate), u = widen(up);
    expect_close(y, plain(g, u), 1e-7);
    expect_close(gate_gradient,
                 numeric_gradient([&](const Doubles& at) { return dot(plain(at, u), dy); }, g),
                 1e-6);
    expect_close(up_gradient,
                 numeric_gradient([&](const Doubles& at) { return dot(plain(g, at), dy); }, u),
                 1e-6);
  }
}

}  // namespace
}  // namespace rehearse::activation_test
