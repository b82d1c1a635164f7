// Gradients as whole numbers from -127 to 127 and one scale: a quarter of the bytes of fp32.
//
//   scale = largest |x| / 127,   code = x / scale to nearest, ties to even,   x ≈ code · scale
//
// The error of a number is at most half a scale. Ranks that sum codes must agree on a scale first
// (the maximum of theirs); sums of codes are exact in 32 bits for 16 million ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rehearse {

/// 0 for no numbers or nothing but zeros. Here and below the numbers are finite (all_finite of
/// loss_scale.hpp tells).
float int8_scale(std::span<const float> x);

float largest_magnitude(std::span<const float> x);
/// So that the sum of the codes of so many ranks, at most 127, has 8 bits, too: codes go up to
/// 127 / ranks, rounded down. `largest` is that of all of them.
float shared_int8_scale(float largest, std::size_t ranks);

/// Beyond ±127 scales a code stays at ±127; with a scale of 0 all codes are 0.
void quantize(std::span<const float> x, float scale, std::span<std::int8_t> codes);
void dequantize(std::span<const std::int8_t> codes, float scale, std::span<float> x);

/// sum += codes, and back to numbers.
void add_codes(std::span<const std::int8_t> codes, std::span<std::int32_t> sum);
void dequantize(std::span<const std::int32_t> sums, float scale, std::span<float> x);

}  // namespace rehearse
