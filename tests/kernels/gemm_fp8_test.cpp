// Products of fp8 numbers: every pattern of both formats once, and sums against plain fp64.
#include "kernels/math/gemm_fp8.hpp"

#include <cmath>

#include "kernels/math/number_formats.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::gemm_fp8_test {
namespace {

// One by one: x · 1 is x, whatever the pattern, times both scales.
TEST(GemmFp8, EveryPatternIsItsNumber) {
  const std::vector<std::uint8_t> one{static_cast<std::uint8_t>(to_e4m3(1.0F))};
  for (int pattern = 0; pattern < 256; ++pattern)
    for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2}) {
      const std::vector<std::uint8_t> x{static_cast<std::uint8_t>(pattern)};
      const float number = format == Fp8Format::e4m3 ? to_float(static_cast<E4m3>(pattern))
                                                     : to_float(static_cast<E5m2>(pattern));
      Floats y(1);
      gemm_fp8({1, 1, 1}, {x, format, 0.5F}, {one, Fp8Format::e4m3, 8.0F}, y);
      if (std::isnan(number))
        EXPECT_TRUE(std::isnan(y[0])) << pattern;
      else
        EXPECT_EQ(y[0], 4 * number) << pattern;
    }
}

TEST(GemmFp8, RowsByRows) {
  // [1 2] [1 0.5]'   [1 + 1  4 + 2]
  // [4 8] [4 1  ]  = [4 + 4 16 + 8]
  const auto bits = [](const Floats& values) {
    std::vector<std::uint8_t> all;
    for (const float value : values) all.push_back(static_cast<std::uint8_t>(to_e4m3(value)));
    return all;
  };
  const auto a = bits({1, 2, 4, 8}), b = bits({1, 0.5F, 4, 1});
  Floats c(4);
  gemm_fp8({2, 2, 2}, {a}, {b}, c);
  EXPECT_EQ(c, (Floats{2, 6, 8, 24}));
}

}  // namespace
}  // namespace rehearse::gemm_fp8_test
