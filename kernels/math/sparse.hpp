// A few numbers of a long vector, by index: what compressed gradients travel as.
#pragma once

#include <cstdint>
#include <span>

namespace rehearse {

/// target[i] = source[indices[i]].
void sparse_gather(std::span<const float> source, std::span<const std::uint32_t> indices,
                   std::span<float> target);

/// target[indices[i]] += values[i], in the order of i: the same bits on every run even where an
/// index comes twice. The transpose, and so the backward pass, of sparse_gather.
void sparse_scatter_add(std::span<const float> values, std::span<const std::uint32_t> indices,
                        std::span<float> target);

/// target[indices[i]] = 0.
void sparse_clear(std::span<const std::uint32_t> indices, std::span<float> target);

}  // namespace rehearse
