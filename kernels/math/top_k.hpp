// The k numbers of largest magnitude, by a threshold: exact, or guessed from a sample as in Deep
// Gradient Compression (Lin, Han, Mao, Wang and Dally, ICLR 2018).
//
// Magnitudes compare as |x|; a NaN counts as larger than all, so that it is never hidden. Of equals
// at the threshold the first in memory are taken: the same choice on every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/math/philox.hpp"

namespace rehearse {

/// The k-th largest magnitude; 1 <= k <= values.size().
float exact_threshold(std::span<const float> values, std::size_t k);

/// The same guessed from `sample` numbers, one at random in each of as many equal parts of the
/// values; 1 <= sample <= values.size(), and k <= values.size().
float sampled_threshold(std::span<const float> values, std::size_t k, std::size_t sample,
                        const RandomWords& words);

/// The indices, ascending, of at most `limit` magnitudes that are >= threshold: all above it, and
/// of those equal to it as many as fit, the first first. Where more than `limit` are above it, the
/// largest `limit` (the paper's second, exact selection among those selected).
std::vector<std::uint32_t> select_above(std::span<const float> values, float threshold,
                                        std::size_t limit);

/// Exactly min(k, values.size()) indices, ascending.
std::vector<std::uint32_t> top_k(std::span<const float> values, std::size_t k);

}  // namespace rehearse
