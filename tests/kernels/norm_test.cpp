// Both norms against their formulas in fp64, gradients against central differences of those.
#include "kernels/math/norm.hpp"

#include "tests/kernels/numbers.hpp"

namespace rehearse::norm_test {
namespace {

constexpr float epsilon = 1e-5F;

Doubles layer_norm_plain(const Doubles& x, const Doubles& weight, const Doubles& bias,
                         RowShape shape) {
  Doubles y(x.size());
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const double* row = x.data() + r * shape.width;
    const auto n = static_cast<double>(shape.width);
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < shape.width; ++c) mean += row[c] / n;
    for (std::size_t c = 0; c < shape.width; ++c) variance += std::pow(row[c] - mean, 2) / n;
    for (std::size_t c = 0; c < shape.width; ++c)
      y[r * shape.width + c] =
          (row[c] - mean) / std::sqrt(variance + static_cast<double>(epsilon)) * weight[c] +
          bias[c];
  }
  return y;
}

Doubles rms_norm_plain(const Doubles& x, const Doubles& weight, RowShape shape) {
  Doubles y(x.size());
  for (std::size_t r = 0; r < shape.rows; ++r) {
    double square = 0;
    for (std::size_t c = 0; c < shape.width; ++c)
      square += std::pow(x[r * shape.width + c], 2) / static_cast<double>(shape.width);
    for (std::size_t c = 0; c < shape.width; ++c)
      y[r * shape.width + c] =
          x[r * shape.width + c] * weight[c] / std::sqrt(square + static_cast<double>(epsilon));
  }
  return y;
}

Doubles plus(Doubles a, std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += static_cast<double>(b[i]);
  return a;
}

TEST(LayerNorm, ForwardAndBackward) {
  SeededNumbers numbers(31);
  for (const RowShape shape : row_shapes()) {
    const Floats x = numbers.floats(shape.size()), weight = numbers.floats(shape.width);
    const Floats bias = numbers.floats(shape.width), dy = numbers.floats(shape.size());
    const Floats before = numbers.floats(shape.width);
    Floats y(shape.size()), mean(shape.rows), rate(shape.rows), dx(shape.size());
    Floats dw = before, db = before;
    const NormStatistics statistics{mean, rate};
    layer_norm(x, weight, bias, shape, epsilon, y, statistics);
    layer_norm_backward(dy, x, weight, shape, statistics, dx, dw, db);
    const Doubles wx = widen(x), ww = widen(weight), wb = widen(bias);
    expect_close(y, layer_norm_plain(wx, ww, wb, shape), 1e-6);
    // A row of one is all mean: its slope is zero, and 1/√epsilon magnifies what rounding leaves.
    expect_close(
        dx,
        numeric_gradient(
            [&](const Doubles& at) { return dot(layer_norm_plain(at, ww, wb, shape), dy); }, wx),
        1e-5);
    expect_close(
        dw,
        plus(numeric_gradient(
                 [&](const Doubles& at) { return dot(layer_norm_plain(wx, at, wb, shape), dy); },
                 ww),
             before),
        5e-6);
    expect_close(
        db,
        plus(numeric_gradient(
                 [&](const Doubles& at) { return dot(layer_norm_plain(wx, ww, at, shape), dy); },
                 wb),
             before),
        5e-6);
  }
}

TEST(LayerNorm, LeavesMeanAndRate) {
  const Floats x{1, 2, 3, 4, 10, 10, 10, 10}, ones(4, 1.0F), zeros(4);
  Floats y(8), mean(2), rate(2);
  layer_norm(x, ones, zeros, {2, 4}, epsilon, y, {mean, rate});
  EXPECT_EQ(mean, (Floats{2.5F, 10}));
  EXPECT_FLOAT_EQ(rate[0], static_cast<float>(1 / std::sqrt(1.25 + 1e-5)));
  EXPECT_FLOAT_EQ(rate[1], static_cast<float>(1 / std::sqrt(1e-5)));
  EXPECT_EQ((Floats{y.begin() + 4, y.end()}), zeros);
}

TEST(LayerNorm, AGreatMeanCostsNoDigits) {
  // In fp32 the mean of squares minus the square of the mean would be noise here.
  const Floats x{10000, 10001, 10002, 10003}, ones(4, 1.0F), zeros(4);
  Floats y(4), mean(1), rate(1);
  layer_norm(x, ones, zeros, {1, 4}, 0, y, {mean, rate});
  const double unit = 1 / std::sqrt(1.25);
  expect_close(y, Doubles{-1.5 * unit, -0.5 * unit, 0.5 * unit, 1.5 * unit}, 1e-7);
}

TEST(RmsNorm, ForwardAndBackward) {
  SeededNumbers numbers(32);
  for (const RowShape shape : row_shapes()) {
    const Floats x = numbers.floats(shape.size()), weight = numbers.floats(shape.width);
    const Floats dy = numbers.floats(shape.size()), before = numbers.floats(shape.width);
    Floats y(shape.size()), rate(shape.rows), dx(shape.size()), dw = before;
    rms_norm(x, weight, shape, epsilon, y, rate);
    rms_norm_backward(dy, x, weight, shape, rate, dx, dw);
    const Doubles wx = widen(x), ww = widen(weight);
    expect_close(y, rms_norm_plain(wx, ww, shape), 1e-6);
    expect_close(dx,
                 numeric_gradient(
                     [&](const Doubles& at) { return dot(rms_norm_plain(at, ww, shape), dy); }, wx),
                 1e-5);
    expect_close(
        dw,
        plus(numeric_gradient(
                 [&](const Doubles& at) { return dot(rms_norm_plain(wx, at, shape), dy); }, ww),
             before),
        5e-6);
  }
}

TEST(Norms, RowsDoNotKnowOfEachOther) {
  SeededNumbers numbers(33);
  const RowShape shape{6, 17};
  const Floats x = numbers.floats(shape.size()), ones(17, 1.0F), zeros(17);
  Floats whole(shape.size()), parts(shape.size()), mean(6), rate(6);
  layer_norm(x, ones, zeros, shape, epsilon, whole, {mean, rate});
  for (std::size_t r = 0; r < 6; ++r)
    layer_norm(std::span{x}.subspan(r * 17, 17), ones, zeros, {1, 17}, epsilon,
               std::span{parts}.subspan(r * 17, 17),
               {std::span{mean}.subspan(r, 1), std::span{rate}.subspan(r, 1)});
  EXPECT_EQ(bits(parts), bits(whole));
}

}  // namespace
}  // namespace rehearse::norm_test
