// A threshold first, then one pass over the numbers: on a GPU both are kernels without sorting.
#include "kernels/math/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

float magnitude(float value) {
  return std::isnan(value) ? std::numeric_limits<float>::infinity() : std::abs(value);
}

float kth_largest(std::vector<float>& magnitudes, std::size_t k) {
  ASSERT(k >= 1 && k <= magnitudes.size());
  const auto kth = magnitudes.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::ranges::nth_element(magnitudes, kth, std::greater<>{});
  return *kth;
}

}  // namespace

float exact_threshold(std::span<const float> values, std::size_t k) {
  std::vector<float> magnitudes(values.size());
  std::ranges::transform(values, magnitudes.begin(), magnitude);
  return kth_largest(magnitudes, k);
}

float sampled_threshold(std::span<const float> values, std::size_t k, std::size_t sample,
                        const RandomWords& words) {
  ASSERT(k >= 1 && k <= values.size() && sample >= 1 && sample <= values.size());
  std::vector<float> magnitudes(sample);
  for (std::size_t i = 0; i < sample; ++i) {
    const std::size_t begin = values.size() * i / sample, end = values.size() * (i + 1) / sample;
    magnitudes[i] = magnitude(values[begin + words.word(i) % (end - begin)]);
  }
  // The same share of the sample as k is of the values, at least one number.
  const double share = static_cast<double>(k) / static_cast<double>(values.size());
  const double wanted = std::ceil(share * static_cast<double>(sample));
  return kth_largest(magnitudes,
                     std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, sample));
}

std::vector<std::uint32_t> select_above(std::span<const float> values, float threshold,
                                        std::size_t limit) {
  ASSERT(values.size() <= std::numeric_limits<std::uint32_t>::max());
  const auto above = static_cast<std::size_t>(
      std::ranges::count_if(values, [&](float value) { return magnitude(value) > threshold; }));
  if (above > limit)
    return limit == 0 ? std::vector<std::uint32_t>{}
                      : select_above(values, exact_threshold(values, limit), limit);
  std::size_t equals_left = limit - above;
  std::vector<std::uint32_t> selected;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float size = magnitude(values[i]);
    const bool fits = size == threshold && equals_left > 0;
    if (fits) --equals_left;
    if (fits || size > threshold) selected.push_back(static_cast<std::uint32_t>(i));
  }
  return selected;
}

std::vector<std::uint32_t> top_k(std::span<const float> values, std::size_t k) {
  const std::size_t count = std::min(k, values.size());
  if (count == 0) return {};
  return select_above(values, exact_threshold(values, count), count);
}

}  // namespace rehearse
