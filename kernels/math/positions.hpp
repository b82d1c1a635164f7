// Where a token stands: learned positions (a row of a table for each), or rotary ones (Su et al.
// 2021), which turn pairs of numbers by an angle that grows with the position.
//
//   learned  y[i] += table[i mod length];             backward  table_gradient[i mod length] +=
//   dy[i] rotary   (a, b) → (a cos t - b sin t, a sin t + b cos t),   t = position · base^(-2j /
//   width)
//            for pair j: numbers j and j + width / 2 of a head (Hugging Face's halves); backward
//            turns by -t
//
// Rows are [sequence][position]. Angles in fp64, rounded once.
#pragma once

#include <span>

#include "kernels/math/rows.hpp"

namespace rehearse {

/// `table` has at least `length` rows of y's width, which are added to the rows of y in turn.
void add_positions(std::span<const float> table, RowShape shape, std::size_t length,
                   std::span<float> y);
void positions_backward(std::span<const float> y_gradient, RowShape shape, std::size_t length,
                        std::span<float> table_gradient);

struct Rotation {
  RowShape shape;              // rows are tokens; width is heads × head_width
  std::size_t head_width = 0;  // even
  std::size_t length = 0;      // of a sequence
  double base = 10000;
  bool back = false;  // the backward pass
};
/// x and y may be the same.
void rotate(std::span<const float> x, const Rotation& rotation, std::span<float> y);

}  // namespace rehearse
