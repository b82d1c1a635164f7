// Rows of a table by token, and the sums of gradients back into it.
#pragma once

#include <span>

#include "kernels/math/rows.hpp"
#include "kernels/math/token.hpp"

namespace rehearse {

/// y[i] = table[tokens[i]]; `table` is vocabulary × width, `y` tokens × width.
void embedding(std::span<const float> table, RowShape table_shape, std::span<const Token> tokens,
               std::span<float> y);

/// table_gradient[tokens[i]] += y_gradient[i], in the order of i: a token that appears twice is
/// summed the same way on every run, and however the positions are cut into calls.
void embedding_backward(std::span<const float> y_gradient, std::span<const Token> tokens,
                        std::span<float> table_gradient, RowShape table_shape);

}  // namespace rehearse
