// A strip of columns at a time: the rows are read in the order of memory, the sums stay in cache.
#include "kernels/math/rows.hpp"

#include <algorithm>
#include <array>

#include "sim/base/assert.hpp"

namespace rehearse {

void add_column_sums(std::span<const float> x, RowShape shape, std::span<float> sums) {
  ASSERT(x.size() == shape.size() && sums.size() == shape.width);
  constexpr std::size_t strip = 64;
  for (std::size_t first = 0; first < shape.width; first += strip) {
    const std::size_t count = std::min(strip, shape.width - first);
    std::array<double, strip> strip_sums{};
    for (std::size_t r = 0; r < shape.rows; ++r) {
      const auto row = x.subspan(r * shape.width + first, count);
      for (std::size_t c = 0; c < count; ++c) strip_sums[c] += static_cast<double>(row[c]);
    }
    for (std::size_t c = 0; c < count; ++c)
      sums[first + c] = static_cast<float>(static_cast<double>(sums[first + c]) + strip_sums[c]);
  }
}

}  // namespace rehearse
