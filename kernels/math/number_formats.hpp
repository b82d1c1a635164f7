// Narrow floating-point formats, bit by bit: fp16, bf16 and the two kinds of fp8, to and from fp32.
//
//          sign exponent mantissa   largest     least normal   infinity   NaN (positive)
//   fp16    1      5        10      65504       2^-14          yes        7c01..7fff, written 7fff
//   bf16    1      8         7      3.39e38     2^-126         yes        7f81..7fff, written 7fff
//   e4m3    1      4         3      448         2^-6           none       7f
//   e5m2    1      5         2      57344       2^-14          yes        7d..7f, written 7f
//
// IEEE 754 for the first two, OCP 8-bit Floating Point Specification 1.0 for fp8. Everything rounds
// to nearest, ties to even; a NaN is written as CUDA writes it, its payload is lost.
#pragma once

#include <cstdint>
#include <span>

namespace rehearse {

enum class Fp16 : std::uint16_t {};
enum class Bf16 : std::uint16_t {};
enum class E4m3 : std::uint8_t {};
enum class E5m2 : std::uint8_t {};

float to_float(Fp16 value);
float to_float(Bf16 value);
float to_float(E4m3 value);
float to_float(E5m2 value);

Fp16 to_fp16(float value);
Bf16 to_bf16(float value);

/// What becomes of a number too large for fp8. saturate: the largest finite one, infinities too
/// (CUDA's SATFINITE, what training uses). overflow: infinity, or NaN where there is none.
enum class Fp8Range : std::uint8_t { saturate, overflow };
E4m3 to_e4m3(float value, Fp8Range range = Fp8Range::saturate);
E5m2 to_e5m2(float value, Fp8Range range = Fp8Range::saturate);

/// Number by number; source and target have the same length.
void cast(std::span<const float> source, std::span<Fp16> target);
void cast(std::span<const float> source, std::span<Bf16> target);
void cast(std::span<const float> source, std::span<E4m3> target, Fp8Range = Fp8Range::saturate);
void cast(std::span<const float> source, std::span<E5m2> target, Fp8Range = Fp8Range::saturate);
void cast(std::span<const Fp16> source, std::span<float> target);
void cast(std::span<const Bf16> source, std::span<float> target);
void cast(std::span<const E4m3> source, std::span<float> target);
void cast(std::span<const E5m2> source, std::span<float> target);

}  // namespace rehearse
