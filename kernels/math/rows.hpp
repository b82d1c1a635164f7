// A matrix as the row kernels see it: rows of equal width, one behind the other, and sums over it.
#pragma once

#include <cstddef>
#include <span>

namespace rehearse {

/// Element (r, c) is at r * width + c. Either number may be 0.
struct RowShape {
  std::size_t rows = 0, width = 0;

  constexpr std::size_t size() const { return rows * width; }
  friend constexpr bool operator==(const RowShape&, const RowShape&) = default;
};

/// sums[c] += x[0,c] + x[1,c] + …: the gradient of a bias. Added up in fp64 in the order of rows,
/// rounded once.
void add_column_sums(std::span<const float> x, RowShape shape, std::span<float> sums);

}  // namespace rehearse
