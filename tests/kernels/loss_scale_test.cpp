// Dynamic loss scaling: what overflows is seen, the scale grows and backs off, steps are skipped.
#include "kernels/math/loss_scale.hpp"

#include <limits>

#include "tests/kernels/numbers.hpp"

namespace rehearse::loss_scale_test {
namespace {

TEST(LossScale, SeesEveryNumberThatIsNotFinite) {
  EXPECT_TRUE(all_finite(Floats{}));
  for (const std::size_t n : lengths()) {
    if (n == 0) continue;
    Floats x(n, std::numeric_limits<float>::max());
    EXPECT_TRUE(all_finite(x));
    for (const std::size_t where : {std::size_t{0}, n / 2, n - 1}) {
      for (const float bad :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        Floats broken = x;
        broken[where] = bad;
        EXPECT_FALSE(all_finite(broken)) << n << " " << where;
      }
    }
  }
}

TEST(LossScale, SeesAllPatternsOf16Bits) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const std::vector half{static_cast<Fp16>(code)};
    const std::vector brain{static_cast<Bf16>(code)};
    ASSERT_EQ(all_finite(half), std::isfinite(to_float(half[0])));
    ASSERT_EQ(all_finite(brain), std::isfinite(to_float(brain[0])));
  }
}

TEST(LossScale, GrowsAfterEnoughGoodStepsInARow) {
  LossScale scale{.scale = 1024, .growth_interval = 3};
  scale = scale.after(true).after(true);
  EXPECT_EQ(scale.scale, 1024);
  scale = scale.after(true);
  EXPECT_EQ(scale, (LossScale{.scale = 2048, .growth_interval = 3}));
  scale = scale.after(true).after(true).after(false);  // the row is broken
  EXPECT_EQ(scale, (LossScale{.scale = 1024, .growth_interval = 3, .skipped_steps = 1}));
  scale = scale.after(true).after(true);
  EXPECT_EQ(scale.scale, 1024);
  EXPECT_EQ(scale.after(true).scale, 2048);
  EXPECT_EQ(scale.unscale(), 1.0F / 1024);
}

TEST(LossScale, StaysWithinItsLimits) {
  LossScale scale{.scale = 2, .growth_interval = 1};
  for (int i = 0; i < 5; ++i) scale = scale.after(false);
  EXPECT_EQ(scale.scale, 1);
  EXPECT_EQ(scale.skipped_steps, 5U);
  for (int i = 0; i < 100; ++i) scale = scale.after(true);
  EXPECT_EQ(scale.scale, 0x1p24);
  EXPECT_THROW((LossScale{.growth_interval = 0}.after(true)), std::logic_error);
}

TEST(LossScale, SavesGradientsThatFp16Loses) {
  const float small = 1e-8F;  // below half of 2^-24
  EXPECT_EQ(to_fp16(small), Fp16{0});
  const LossScale scale;
  const float scaled = small * static_cast<float>(scale.scale);
  EXPECT_NEAR(to_float(to_fp16(scaled)) * scale.unscale(), small, small * 1e-3F);
}

}  // namespace
}  // namespace rehearse::loss_scale_test
