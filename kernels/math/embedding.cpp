// A gather of rows, and a scatter of sums.
#include "kernels/math/embedding.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/math/elementwise.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

std::size_t row_offset(Token token, RowShape table) {
  ASSERT(token >= Token{0} && static_cast<std::size_t>(token) < table.rows);
  return static_cast<std::size_t>(token) * table.width;
}

}  // namespace

void embedding(std::span<const float> table, RowShape table_shape, std::span<const Token> tokens,
               std::span<float> y) {
  const std::size_t width = table_shape.width;
  ASSERT(table.size() == table_shape.size() && y.size() == tokens.size() * width);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto row = table.subspan(row_offset(tokens[i], table_shape), width);
    std::ranges::copy(row, y.subspan(i * width, width).begin());
  }
}

void embedding_backward(std::span<const float> y_gradient, std::span<const Token> tokens,
                        std::span<float> table_gradient, RowShape table_shape) {
  const std::size_t width = table_shape.width;
  ASSERT(table_gradient.size() == table_shape.size());
  ASSERT(y_gradient.size() == tokens.size() * width);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    add_into(y_gradient.subspan(i * width, width),
             table_gradient.subspan(row_offset(tokens[i], table_shape), width));
}

}  // namespace rehearse
