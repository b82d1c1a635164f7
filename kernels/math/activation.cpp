// Each curve is a value and a slope; the loops around them are alike.
#include "kernels/math/activation.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

constexpr double cubic = 0.044715;
constexpr double tanh_rate = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(tanh_rate * (x + cubic * x * x * x)));
}
double gelu_tanh_slope(double x) {
  const double t = std::tanh(tanh_rate * (x + cubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * tanh_rate * (1 + 3 * cubic * x * x);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double gelu_erf(double x) { return x * normal_cdf(x); }
double gelu_erf_slope(double x) {
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return normal_cdf(x) + x * density;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu_of(double x) { return x * sigmoid(x); }
double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

}  // namespace

void bias_gelu(std::span<const float> x, std::span<const float> bias, RowShape shape, GeluForm form,
               std::span<float> y) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size() && bias.size() == shape.width);
  const auto curve = form == GeluForm::tanh ? gelu_tanh : gelu_erf;
  for (std::size_t r = 0; r < shape.rows; ++r) {
    for (std::size_t c = 0; c < shape.width; ++c) {
      const std::size_t i = r * shape.width + c;
      y[i] = static_cast<float>(curve(static_cast<double>(x[i] + bias[c])));
    }
  }
}

void bias_gelu_backward(std::span<const float> y_gradient, std::span<const float> x,
                        std::span<const float> bias, RowShape shape, GeluForm form,
                        std::span<float> x_gradient, std::span<float> bias_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(bias.size() == shape.width && x_gradient.size() == shape.size());
  const auto slope = form == GeluForm::tanh ? gelu_tanh_slope : gelu_erf_slope;
  for (std::size_t r = 0; r < shape.rows; ++r) {
    for (std::size_t c = 0; c < shape.width; ++c) {
      const std::size_t i = r * shape.width + c;
      const double at = static_cast<double>(x[i] + bias[c]);
      x_gradient[i] = static_cast<float>(static_cast<double>(y_gradient[i]) * slope(at));
    }
  }
  add_column_sums(x_gradient, shape, bias_gradient);
}

void add_bias(std::span<const float> x, std::span<const float> bias, RowShape shape,
              std::span<float> y) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size() && bias.size() == shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r)
    for (std::size_t c = 0; c < shape.width; ++c)
      y[r * shape.width + c] = x[r * shape.width + c] + bias[c];
}

void relu(std::span<const float> x, std::span<float> y) {
  ASSERT(x.size() == y.size());
  // A NaN is handed on: it is not below zero.
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

void relu_backward(std::span<const float> y_gradient, std::span<const float> y,
                   std::span<float> x_gradient) {
  ASSERT(y_gradient.size() == y.size() && x_gradient.size() == y.size());
  // Read in any case: a branch on random signs takes five times as long.
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float gradient = y_gradient[i];
    x_gradient[i] = y[i] > 0 ? gradient : 0;
  }
}

void silu(std::span<const float> x, std::span<float> y) {
  ASSERT(x.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<float>(silu_of(static_cast<double>(x[i])));
}

void silu_backward(std::span<const float> y_gradient, std::span<const float> x,
                   std::span<float> x_gradient) {
  ASSERT(y_gradient.size() == x.size() && x_gradient.size() == x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    x_gradient[i] = static_cast<float>(static_cast<double>(y_gradient[i]) *
                                       silu_slope(static_cast<double>(x[i])));
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  ASSERT(gate.size() == y.size() && up.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<float>(silu_of(static_cast<double>(gate[i])) * static_cast<double>(up[i]));
}

void swiglu_backward(std::span<const float> y_gradient, std::span<const float> gate,
                     std::span<const float> up, std::span<float> gate_gradient,
                     std::span<float> up_gradient) {
  ASSERT(y_gradient.size() == gate.size() && up.size() == gate.size());
  ASSERT(gate_gradient.size() == gate.size() && up_gradient.size() == gate.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double dy = static_cast<double>(y_gradient[i]), g = static_cast<double>(gate[i]);
    const double u = static_cast<double>(up[i]);
    gate_gradient[i] = static_cast<float>(dy * u * silu_slope(g));
    up_gradient[i] = static_cast<float>(dy * silu_of(g));
  }
}

}  // namespace rehearse
