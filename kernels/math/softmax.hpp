// Softmax of each row, y = e^(x - max) / Σ e^(x - max), and its backward pass.
//
//   x_gradient = y · (y_gradient - Σ y · y_gradient)
//
// Sums in fp64 in the order of memory. A row of nothing but -infinity (everything masked) gives
// zeros. Outputs may take the place of inputs.
#pragma once

#include <span>

#include "kernels/math/rows.hpp"

namespace rehearse {

void softmax(std::span<const float> x, RowShape shape, std::span<float> y);
void softmax_backward(std::span<const float> y_gradient, std::span<const float> y, RowShape shape,
                      std::span<float> x_gradient);

/// Σ e^x of one row as e^largest · sum. The two are kept apart: beside a great `largest` the digits
/// of log(sum) would be lost. A row of -infinity, or of nothing, has a sum of 0.
struct ExpSum {
  double largest = 0, sum = 0;
};
ExpSum exp_sum(std::span<const float> row);

}  // namespace rehearse
