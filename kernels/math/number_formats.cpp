// One way to round and one to widen, for any split of the bits into exponent and mantissa.
#include "kernels/math/number_formats.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct Layout {
  std::uint32_t exponent_bits, mantissa_bits;

  constexpr std::uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
  /// How much smaller its bias is than that of fp32.
  constexpr std::uint32_t rebias() const { return 127 - ((1U << (exponent_bits - 1)) - 1); }
  /// The code of infinity, where there is one: all exponent bits.
  constexpr std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << mantissa_bits; }
};
constexpr Layout fp16{5, 10}, bf16{8, 7}, e4m3{4, 3}, e5m2{5, 2};
constexpr std::uint32_t e4m3_largest = 0x7e, e5m2_largest = 0x7b, fp8_nan = 0x7f;

constexpr std::uint32_t float_infinity = 0x7f800000;

constexpr std::uint32_t shift_to_nearest_even(std::uint32_t value, std::uint32_t shift) {
  const std::uint32_t odd = (value >> shift) & 1;
  return (value + (1U << (shift - 1)) - 1 + odd) >> shift;
}

// The code of a finite magnitude. The codes of a format are in the order of its numbers, so that
// rounding up carries into the exponent by itself, and past the largest number to infinity's code
// or beyond.
constexpr std::uint32_t rounded(std::uint32_t magnitude, Layout to) {
  const std::uint32_t shift = 23 - to.mantissa_bits, exponent = magnitude >> 23;
  if (exponent > to.rebias()) return shift_to_nearest_even(magnitude - (to.rebias() << 23), shift);
  // Subnormal there: the hidden one becomes visible and moves down with the rest.
  const std::uint32_t fraction = magnitude & 0x7fffff;
  const std::uint32_t significand = exponent == 0 ? fraction : fraction | 0x800000;
  const std::uint32_t more = to.rebias() + 1 - std::max(exponent, 1U);
  return shift + more > 25 ? 0 : shift_to_nearest_even(significand, shift + more);
}

constexpr float widened(std::uint32_t bits, Layout from) {
  const std::uint32_t magnitude = bits & (from.sign_bit() - 1);
  const std::uint32_t sign = (bits & from.sign_bit()) != 0 ? 0x80000000 : 0;
  if (magnitude >> from.mantissa_bits == 0) {
    // magnitude steps of the least subnormal; the product is exact
    const float least_normal = std::bit_cast<float>((from.rebias() + 1) << 23);
    const float value =
        static_cast<float>(magnitude) / static_cast<float>(1U << from.mantissa_bits) * least_normal;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t moved = magnitude << (23 - from.mantissa_bits);
  return std::bit_cast<float>((moved + (from.rebias() << 23)) | sign);
}

// Formats of IEEE 754: the exponent of all ones is infinity and the NaNs.
constexpr float widened_ieee(std::uint32_t bits, Layout from) {
  const std::uint32_t magnitude = bits & (from.sign_bit() - 1);
  if (magnitude < from.infinity()) return widened(bits, from);
  const std::uint32_t sign = (bits & from.sign_bit()) != 0 ? 0x80000000 : 0;
  const std::uint32_t payload = (magnitude - from.infinity()) << (23 - from.mantissa_bits);
  return std::bit_cast<float>(float_infinity | payload | sign);
}

constexpr std::uint32_t magnitude_of(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffff;
}
constexpr bool is_negative(float value) { return std::bit_cast<std::uint32_t>(value) >> 31 != 0; }

constexpr std::uint32_t rounded_ieee(float value, Layout to) {
  const std::uint32_t magnitude = magnitude_of(value);
  if (magnitude > float_infinity) return to.sign_bit() - 1;
  const std::uint32_t sign = is_negative(value) ? to.sign_bit() : 0;
  if (magnitude == float_infinity) return to.infinity() | sign;
  return std::min(rounded(magnitude, to), to.infinity()) | sign;
}

constexpr std::uint32_t rounded_fp8(float value, Layout to, std::uint32_t largest,
                                    std::uint32_t above) {
  const std::uint32_t magnitude = magnitude_of(value);
  if (magnitude > float_infinity) return fp8_nan;
  const std::uint32_t code = magnitude == float_infinity ? above : rounded(magnitude, to);
  return (code > largest ? above : code) | (is_negative(value) ? to.sign_bit() : 0);
}

template <class Source, class Target, class Convert>
void convert_all(std::span<const Source> source, std::span<Target> target, Convert convert) {
  ASSERT(source.size() == target.size());
  for (std::size_t i = 0; i < source.size(); ++i) target[i] = convert(source[i]);
}

}  // namespace

float to_float(Fp16 value) { return widened_ieee(static_cast<std::uint32_t>(value), fp16); }
float to_float(Bf16 value) { return widened_ieee(static_cast<std::uint32_t>(value), bf16); }
float to_float(E5m2 value) { return widened_ieee(static_cast<std::uint32_t>(value), e5m2); }
float to_float(E4m3 value) {
  const auto bits = static_cast<std::uint32_t>(value);
  if ((bits & fp8_nan) != fp8_nan) return widened(bits, e4m3);
  return std::bit_cast<float>(0x7fc00000 | (bits & e4m3.sign_bit()) << 24);
}

Fp16 to_fp16(float value) { return static_cast<Fp16>(rounded_ieee(value, fp16)); }
Bf16 to_bf16(float value) { return static_cast<Bf16>(rounded_ieee(value, bf16)); }
E4m3 to_e4m3(float value, Fp8Range range) {
  const std::uint32_t above = range == Fp8Range::saturate ? e4m3_largest : fp8_nan;
  return static_cast<E4m3>(rounded_fp8(value, e4m3, e4m3_largest, above));
}
E5m2 to_e5m2(float value, Fp8Range range) {
  const std::uint32_t above = range == Fp8Range::saturate ? e5m2_largest : e5m2.infinity();
  return static_cast<E5m2>(rounded_fp8(value, e5m2, e5m2_largest, above));
}

void cast(std::span<const float> source, std::span<Fp16> target) {
  convert_all(source, target, to_fp16);
}
void cast(std::span<const float> source, std::span<Bf16> target) {
  convert_all(source, target, to_bf16);
}
void cast(std::span<const float> source, std::span<E4m3> target, Fp8Range range) {
  convert_all(source, target, [range](float value) { return to_e4m3(value, range); });
}
void cast(std::span<const float> source, std::span<E5m2> target, Fp8Range range) {
  convert_all(source, target, [range](float value) { return to_e5m2(value, range); });
}
void cast(std::span<const Fp16> source, std::span<float> target) {
  convert_all(source, target, [](Fp16 value) { return to_float(value); });
}
void cast(std::span<const Bf16> source, std::span<float> target) {
  convert_all(source, target, [](Bf16 value) { return to_float(value); });
}
void cast(std::span<const E4m3> source, std::span<float> target) {
  convert_all(source, target, [](E4m3 value) { return to_float(value); });
}
void cast(std::span<const E5m2> source, std::span<float> target) {
  convert_all(source, target, [](E5m2 value) { return to_float(value); });
}

}  // namespace rehearse
