// The largest of a row is subtracted first: no power overflows, and one of them is 1.
#include "kernels/math/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/base/assert.hpp"

namespace rehearse {

ExpSum exp_sum(std::span<const float> row) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  double largest = none;
  for (const float value : row) {
    const auto wide = static_cast<double>(value);
    if (std::isnan(wide)) return {wide, wide};  // a later number must not hide it
    largest = std::max(largest, wide);
  }
  if (largest == none) return {};
  double sum = 0;
  for (const float value : row) sum += std::exp(static_cast<double>(value) - largest);
  return {largest, sum};
}

void softmax(std::span<const float> x, RowShape shape, std::span<float> y) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const auto row = x.subspan(r * shape.width, shape.width);
    const auto output = y.subspan(r * shape.width, shape.width);
    const ExpSum total = exp_sum(row);
    for (std::size_t c = 0; c < shape.width; ++c) {
      const double power = std::exp(static_cast<double>(row[c]) - total.largest);
      output[c] = total.sum == 0 ? 0.0F : static_cast<float>(power / total.sum);
    }
  }
}

void softmax_backward(std::span<const float> y_gradient, std::span<const float> y, RowShape shape,
                      std::span<float> x_gradient) {
  ASSERT(y_gradient.size() == shape.size() && y.size() == shape.size());
  ASSERT(x_gradient.size() == shape.size());
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const std::size_t first = r * shape.width;
    double product = 0;
    for (std::size_t i = first; i < first + shape.width; ++i)
      product += static_cast<double>(y[i]) * static_cast<double>(y_gradient[i]);
    for (std::size_t i = first; i < first + shape.width; ++i)
      x_gradient[i] = static_cast<float>(static_cast<double>(y[i]) *
                                         (static_cast<double>(y_gradient[i]) - product));
  }
}

}  // namespace rehearse
