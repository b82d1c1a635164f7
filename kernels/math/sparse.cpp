// Gather, scatter and clear; an index out of range is our own mistake.
#include "kernels/math/sparse.hpp"

#include <cstddef>

#include "sim/base/assert.hpp"

namespace rehearse {

void sparse_gather(std::span<const float> source, std::span<const std::uint32_t> indices,
                   std::span<float> target) {
  ASSERT(indices.size() == target.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    ASSERT(indices[i] < source.size());
    target[i] = source[indices[i]];
  }
}

void sparse_scatter_add(std::span<const float> values, std::span<const std::uint32_t> indices,
                        std::span<float> target) {
  ASSERT(indices.size() == values.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    ASSERT(indices[i] < target.size());
    target[indices[i]] += values[i];
  }
}

void sparse_clear(std::span<const std::uint32_t> indices, std::span<float> target) {
  for (const std::uint32_t index : indices) {
    ASSERT(index < target.size());
    target[index] = 0;
  }
}

}  // namespace rehearse
