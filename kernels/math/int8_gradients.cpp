// Divisions in fp32, as a GPU does them: the same codes there and here.
#include "kernels/math/int8_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/base/assert.hpp"

namespace rehearse {

float largest_magnitude(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  return largest;
}

float int8_scale(std::span<const float> x) { return largest_magnitude(x) / 127; }

float shared_int8_scale(float largest, std::size_t ranks) {
  ASSERT(ranks > 0 && ranks <= 127);
  return largest / static_cast<float>(127 / ranks);
}

void quantize(std::span<const float> x, float scale, std::span<std::int8_t> codes) {
  ASSERT(x.size() == codes.size() && scale >= 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float steps = scale == 0 ? 0 : std::nearbyint(x[i] / scale);
    codes[i] = static_cast<std::int8_t>(std::clamp(steps, -127.0F, 127.0F));
  }
}

void dequantize(std::span<const std::int8_t> codes, float scale, std::span<float> x) {
  ASSERT(x.size() == codes.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(codes[i]) * scale;
}

void add_codes(std::span<const std::int8_t> codes, std::span<std::int32_t> sum) {
  ASSERT(codes.size() == sum.size());
  for (std::size_t i = 0; i < codes.size(); ++i) sum[i] += codes[i];
}

void dequantize(std::span<const std::int32_t> sums, float scale, std::span<float> x) {
  ASSERT(x.size() == sums.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(sums[i]) * scale;
}

}  // namespace rehearse
