// The generator against its authors' vectors; masks that depend on nothing but the element.
#include "kernels/math/dropout.hpp"

#include <limits>

#include "kernels/math/elementwise.hpp"
#include "tests/kernels/numbers.hpp"

namespace rehearse::dropout_test {
namespace {

// Random123 1.14, tests/kat_vectors, "philox4x32 10".
TEST(Philox, PublishedVectors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  // Seed, stream and block number sit where the vector's words do, low halves first.
  const RandomWords words{.seed = 0x299f31d0a4093822, .stream = 0x0370734413198a2e};
  EXPECT_EQ(words.block(0x85a308d3243f6a88)[2], 0x5001e420);
  EXPECT_EQ((RandomWords{7, 9}.word(13)), (RandomWords{7, 9}.block(3)[1]));
}

Dropout mask_of(double probability, std::uint64_t stream = 5) {
  return {.probability = probability, .words = {.seed = 42, .stream = stream}};
}

TEST(Dropout, KeepsOrClearsAndScales) {
  SeededNumbers numbers(21);
  for (const double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    for (const std::size_t n : lengths()) {
      const Floats x = numbers.floats(n, 1, 2);
      Floats y(n);
      const Dropout mask = mask_of(p);
      dropout(x, mask, y);
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(y[i], mask.drops(i) ? 0 : x[i] * static_cast<float>(1 / (1 - p)));
      if (p == 0) {
        EXPECT_EQ(y, x);
      }
      if (p == 1) {
        EXPECT_EQ(y, Floats(n));
      }
    }
  }
}

TEST(Dropout, DropsTheShareAskedFor) {
  constexpr std::size_t n = 100'000;
  for (const double p : {0.1, 0.5, 0.9}) {
    const Floats x(n, 1.0F);
    Floats y(n);
    dropout(x, mask_of(p), y);
    const auto dropped = static_cast<double>(std::ranges::count(y, 0.0F));
    EXPECT_NEAR(dropped, n * p, 5 * std::sqrt(n * p * (1 - p)));  // 5 sigma
  }
}

TEST(Dropout, StreamsAndSeedsAreOthers) {
  const Floats x(1000, 1.0F);
  Floats a(1000), b(1000), c(1000);
  dropout(x, mask_of(0.5, 1), a);
  dropout(x, mask_of(0.5, 2), b);
  dropout(x, {.probability = 0.5, .words = {.seed = 43, .stream = 1}}, c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST(Dropout, APartFallsAsItDoesInTheWhole) {
  constexpr std::size_t n = 999;
  SeededNumbers numbers(22);
  const Floats x = numbers.floats(n);
  Floats whole(n), parts(n);
  dropout(x, mask_of(0.3), whole);
  for (std::size_t first = 0; first < n;) {
    const std::size_t count = std::min(n - first, numbers.below(11));
    Dropout mask = mask_of(0.3);
    mask.first = first;
    dropout(std::span{x}.subspan(first, count), mask, std::span{parts}.subspan(first, count));
    first += count;
  }
  EXPECT_EQ(bits(parts), bits(whole));
}

TEST(Dropout, FusedWithTheResidualIsBothBitByBit) {
  SeededNumbers numbers(23);
  const Floats x = numbers.floats(77), residual = numbers.floats(77);
  Floats fused(77), two(77);
  dropout_add(x, residual, mask_of(0.2), fused);
  dropout(x, mask_of(0.2), two);
  add(two, residual, two);
  EXPECT_EQ(bits(fused), bits(two));
}

TEST(Dropout, BackwardIsForwardOnTheGradient) {
  SeededNumbers numbers(24);
  const Floats x = numbers.floats(33), dy = numbers.floats(33);
  const Dropout mask = mask_of(0.4);
  const Doubles wanted = numeric_gradient(
      [&](const Doubles& at) {
        Doubles y = at;
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = mask.drops(i) ? 0 : y[i] / 0.6;
        return dot(y, dy);
      },
      widen(x));
  Floats dx(33);
  dropout(dy, mask, dx);
  expect_close(dx, wanted, 1e-6);
}

TEST(Dropout, ClearsEvenWhatIsNotANumber) {
  const Floats x(8, std::numeric_limits<float>::quiet_NaN());
  Floats y(8);
  dropout(x, mask_of(1), y);
  EXPECT_EQ(y, Floats(8));
  EXPECT_THROW(dropout(x, mask_of(1.5), y), std::logic_error);
}

}  // namespace
}  // namespace rehearse::dropout_test
