// Plain loops over rows; the table's gradient is summed in the order of rows.
#include "kernels/math/positions.hpp"

#include <cmath>

#include "sim/base/assert.hpp"

namespace rehearse {

void add_positions(std::span<const float> table, RowShape shape, std::size_t length,
                   std::span<float> y) {
  ASSERT(y.size() == shape.size() && length > 0 && table.size() >= length * shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r)
    for (std::size_t c = 0; c < shape.width; ++c)
      y[r * shape.width + c] += table[r % length * shape.width + c];
}

void positions_backward(std::span<const float> y_gradient, RowShape shape, std::size_t length,
                        std::span<float> table_gradient) {
  ASSERT(y_gradient.size() == shape.size() && length > 0);
  ASSERT(table_gradient.size() >= length * shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r)
    for (std::size_t c = 0; c < shape.width; ++c)
      table_gradient[r % length * shape.width + c] += y_gradient[r * shape.width + c];
}

void rotate(std::span<const float> x, const Rotation& rotation, std::span<float> y) {
  const auto& [shape, head, length, base, back] = rotation;
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  ASSERT(head > 0 && head % 2 == 0 && shape.width % head == 0 && length > 0);
  for (std::size_t r = 0; r < shape.rows; ++r)
    for (std::size_t j = 0; j < head / 2; ++j) {
      const double angle =
          static_cast<double>(r % length) *
          std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(head));
      const double cosine = std::cos(angle), sine = back ? -std::sin(angle) : std::sin(angle);
      for (std::size_t first = 0; first < shape.width; first += head) {
        const std::size_t at = r * shape.width + first + j, other = at + head / 2;
        const auto a = static_cast<double>(x[at]), b = static_cast<double>(x[other]);
        y[at] = static_cast<float>(a * cosine - b * sine);
        y[other] = static_cast<float>(a * sine + b * cosine);
      }
    }
}

}  // namespace rehearse
