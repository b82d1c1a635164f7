// Every pattern of every narrow format, back and forth, and every place where rounding turns.
#include "kernels/math/number_formats.hpp"

#include <limits>

#include "tests/kernels/numbers.hpp"

namespace rehearse::number_formats_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// The value by definition: sign, exponent and mantissa, no bit tricks.
double value_of(std::uint32_t code, int exponent_bits, int mantissa_bits) {
  const auto mantissa = static_cast<double>(code & ((1U << mantissa_bits) - 1));
  const auto exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (code >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  const double scaled = std::ldexp(mantissa, -mantissa_bits);
  return sign *
         (exponent == 0 ? std::ldexp(scaled, 1 - bias) : std::ldexp(1 + scaled, exponent - bias));
}

// One format as the tests see it.
struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  std::uint32_t largest;  // code of the largest finite number
  std::function<float(std::uint32_t)> widen;
  std::function<std::uint32_t(float)> narrow;

  std::uint32_t sign() const { return 1U << (exponent_bits + mantissa_bits); }
};

std::vector<Format> formats() {
  return {
      {"fp16", 5, 10, 0x7bff, [](std::uint32_t c) { return to_float(static_cast<Fp16>(c)); },
       [](float x) { return static_cast<std::uint32_t>(to_fp16(x)); }},
      {"bf16", 8, 7, 0x7f7f, [](std::uint32_t c) { return to_float(static_cast<Bf16>(c)); },
       [](float x) { return static_cast<std::uint32_t>(to_bf16(x)); }},
      {"e4m3", 4, 3, 0x7e, [](std::uint32_t c) { return to_float(static_cast<E4m3>(c)); },
       [](float x) { return static_cast<std::uint32_t>(to_e4m3(x)); }},
      {"e5m2", 5, 2, 0x7b, [](std::uint32_t c) { return to_float(static_cast<E5m2>(c)); },
       [](float x) { return static_cast<std::uint32_t>(to_e5m2(x)); }},
  };
}

TEST(NumberFormats, EveryFinitePatternIsItsDefinitionAndComesBack) {
  for (const Format& format : formats()) {
    for (std::uint32_t code = 0; code <= format.largest; ++code) {
      for (const std::uint32_t signed_code : {code, code | format.sign()}) {
        const float value = format.widen(signed_code);
        ASSERT_EQ(static_cast<double>(value),
                  value_of(signed_code, format.exponent_bits, format.mantissa_bits))
            << format.name << " " << signed_code;
        ASSERT_EQ(std::signbit(value), signed_code != code) << format.name << " " << code;
        ASSERT_EQ(format.narrow(value), signed_code) << format.name;
      }
    }
  }
}

TEST(NumberFormats, RoundsToNearestEvenBetweenAllNeighbours) {
  for (const Format& format : formats()) {
    for (std::uint32_t low = 0; low < format.largest; ++low) {
      const float a = format.widen(low), b = format.widen(low + 1);
      const auto middle = static_cast<float>((static_cast<double>(a) + static_cast<double>(b)) / 2);
      const std::uint32_t even = low % 2 == 0 ? low : low + 1;
      for (const float sign : {1.0F, -1.0F}) {
        const std::uint32_t bit = sign < 0 ? format.sign() : 0;
        ASSERT_EQ(format.narrow(sign * middle), even | bit) << format.name << " " << low;
        ASSERT_EQ(format.narrow(sign * std::nextafter(middle, 0.0F)), low | bit) << format.name;
        ASSERT_EQ(format.narrow(sign * std::nextafter(middle, infinity)), (low + 1) | bit)
            << format.name;
      }
    }
  }
}

TEST(NumberFormats, SpecialPatternsOf16Bits) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float half = to_float(static_cast<Fp16>(code));
    const float brain = to_float(static_cast<Bf16>(code));
    if ((code & 0x7fff) == 0x7c00) {
      ASSERT_EQ(half, code < 0x8000 ? infinity : -infinity);
    }
    if ((code & 0x7fff) > 0x7c00) {
      ASSERT_TRUE(std::isnan(half));
      ASSERT_EQ(to_fp16(half), Fp16{0x7fff});
    }
    if ((code & 0x7fff) == 0x7f80) {
      ASSERT_EQ(brain, code < 0x8000 ? infinity : -infinity);
    }
    if ((code & 0x7fff) > 0x7f80) {
      ASSERT_TRUE(std::isnan(brain));
      ASSERT_EQ(to_bf16(brain), Bf16{0x7fff});
    }
  }
  EXPECT_EQ(to_fp16(infinity), Fp16{0x7c00});
  EXPECT_EQ(to_bf16(-infinity), Bf16{0xff80});
  // Halfway to the number that would come next is infinity already.
  EXPECT_EQ(to_fp16(65520.0F), Fp16{0x7c00});
  EXPECT_EQ(to_fp16(std::nextafter(65520.0F, 0.0F)), Fp16{0x7bff});
  EXPECT_EQ(to_fp16(std::numeric_limits<float>::max()), Fp16{0x7c00});
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), Bf16{0x7f80});
  EXPECT_EQ(to_fp16(std::numeric_limits<float>::denorm_min()), Fp16{0});
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::denorm_min()), Bf16{0x8000});
}

TEST(NumberFormats, Fp8SaturatesOrOverflows) {
  using enum Fp8Range;
  EXPECT_EQ(to_float(E4m3{0x7e}), 448.0F);
  EXPECT_EQ(to_float(E5m2{0x7b}), 57344.0F);
  EXPECT_TRUE(std::isnan(to_float(E4m3{0x7f})) && std::isnan(to_float(E4m3{0xff})));
  EXPECT_EQ(to_float(E4m3{0x78}), 256.0F);  // where e5m2 and IEEE 754 would have infinity
  EXPECT_EQ(to_float(E5m2{0x7c}), infinity);
  EXPECT_EQ(to_float(E5m2{0xfc}), -infinity);
  for (const int code : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff})
    EXPECT_TRUE(std::isnan(to_float(static_cast<E5m2>(code))));
  for (const Fp8Range range : {saturate, overflow}) {
    EXPECT_EQ(to_e4m3(nan, range), E4m3{0x7f});
    EXPECT_EQ(to_e5m2(nan, range), E5m2{0x7f});
    EXPECT_EQ(to_e4m3(464, range), E4m3{0x7e});  // a tie with 480, which is NaN's code and odd
  }
  const float past = std::nextafter(464.0F, infinity);
  for (const float large : {past, 1e30F, infinity}) {
    EXPECT_EQ(to_e4m3(large), E4m3{0x7e});
    EXPECT_EQ(to_e4m3(-large), E4m3{0xfe});
    EXPECT_EQ(to_e4m3(large, overflow), E4m3{0x7f});
    EXPECT_EQ(to_e4m3(-large, overflow), E4m3{0xff});
  }
  for (const float large : {61440.0F, 1e30F, infinity}) {  // 61440: a tie, and 57344 is odd
    EXPECT_EQ(to_e5m2(large), E5m2{0x7b});
    EXPECT_EQ(to_e5m2(-large), E5m2{0xfb});
    EXPECT_EQ(to_e5m2(large, overflow), E5m2{0x7c});
    EXPECT_EQ(to_e5m2(-large, overflow), E5m2{0xfc});
  }
  EXPECT_EQ(to_e5m2(std::nextafter(61440.0F, 0.0F), overflow), E5m2{0x7b});
}

#ifdef __FLT16_MAX__
__extension__ using CompilersHalf = _Float16;

TEST(NumberFormats, Fp16IsTheCompilers) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto theirs =
        static_cast<float>(std::bit_cast<CompilersHalf>(static_cast<std::uint16_t>(code)));
    const float ours = to_float(static_cast<Fp16>(code));
    ASSERT_EQ(std::isnan(ours), std::isnan(theirs)) << code;
    if (!std::isnan(ours)) {
      ASSERT_EQ(bits(Floats{ours}), bits(Floats{theirs})) << code;
    }
  }
  // One in 4,093 of all fp32 patterns, and all of those that can matter near the ties are above.
  for (std::uint64_t pattern = 0; pattern < (1ULL << 32); pattern += 4093) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
    if (std::isnan(value)) continue;
    const auto theirs = static_cast<CompilersHalf>(value);
    ASSERT_EQ(static_cast<std::uint16_t>(to_fp16(value)), std::bit_cast<std::uint16_t>(theirs))
        << pattern;
  }
}
#endif

TEST(NumberFormats, SpansAreCastNumberByNumber) {
  SeededNumbers numbers(1);
  for (const std::size_t length : lengths()) {
    const Floats x = numbers.floats(length, -500, 500);
    std::vector<Fp16> half(length);
    std::vector<Bf16> brain(length);
    std::vector<E4m3> four(length);
    std::vector<E5m2> five(length);
    cast(x, half);
    cast(x, brain);
    cast(x, four, Fp8Range::overflow);
    cast(x, five);
    Floats back(length);
    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(half[i], to_fp16(x[i]));
      ASSERT_EQ(brain[i], to_bf16(x[i]));
      ASSERT_EQ(four[i], to_e4m3(x[i], Fp8Range::overflow));
      ASSERT_EQ(five[i], to_e5m2(x[i]));
    }
    cast(std::span<const Bf16>{brain}, back);
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(back[i], to_float(brain[i]));
    cast(std::span<const Fp16>{half}, back);
    for (std::size_t i = 0; i < length; ++i) ASSERT_NEAR(back[i], x[i], std::abs(x[i]) * 0x1p-11);
    cast(std::span<const E5m2>{five}, back);
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(back[i], to_float(five[i]));
    cast(std::span<const E4m3>{four}, back);
    for (std::size_t i = 0; i < length; ++i)
      ASSERT_EQ(bits(Floats{back[i]}), bits(Floats{to_float(four[i])}));
  }
}

TEST(NumberFormats, LengthsMustAgree) {
  const Floats x(3);
  std::vector<Fp16> half(2);
  EXPECT_THROW(cast(x, half), std::logic_error);
}

}  // namespace
}  // namespace rehearse::number_formats_test
