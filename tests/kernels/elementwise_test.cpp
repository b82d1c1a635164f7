// Sums and multiples: exact, the same fused and unfused, whole and in parts, apart and in place.
#include "kernels/math/elementwise.hpp"

#include "tests/kernels/numbers.hpp"

namespace rehearse::elementwise_test {
namespace {

TEST(Elementwise, IsPlainFloatArithmetic) {
  SeededNumbers numbers(2);
  for (const std::size_t n : lengths()) {
    const Floats a = numbers.floats(n), b = numbers.floats(n);
    Floats sum(n), scaled(n), into = b, more = b;
    add(a, b, sum);
    scale(a, 0.1F, scaled);
    add_into(a, into);
    add_scaled(a, 0.1F, more);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(sum[i], a[i] + b[i]);
      ASSERT_EQ(scaled[i], a[i] * 0.1F);
      ASSERT_EQ(into[i], b[i] + a[i]);
      const float product = a[i] * 0.1F;
      ASSERT_EQ(more[i], b[i] + product);
    }
  }
}

TEST(Elementwise, Add3IsTwoAddsBitByBit) {
  SeededNumbers numbers(3);
  for (const std::size_t n : lengths()) {
    const Floats a = numbers.floats(n, -1e4, 1e4), b = numbers.floats(n, -1e-3, 1e-3);
    const Floats c = numbers.floats(n);
    Floats fused(n), two(n);
    add3(a, b, c, fused);
    add(a, b, two);
    add(two, c, two);  // in place
    EXPECT_EQ(bits(fused), bits(two));
  }
}

TEST(Elementwise, AnyCutGivesTheSameBits) {
  constexpr std::size_t n = 1000;
  SeededNumbers numbers(4);
  const Floats a = numbers.floats(n), b = numbers.floats(n), c = numbers.floats(n);
  Floats whole(n), parts(n), whole_sum = c, part_sum = c;
  add3(a, b, c, whole);
  add_into(a, whole_sum);
  for (std::size_t first = 0; first < n;) {
    const std::size_t count = std::min(n - first, numbers.below(70));
    const auto part = [&](const Floats& x) { return std::span{x}.subspan(first, count); };
    add3(part(a), part(b), part(c), std::span{parts}.subspan(first, count));
    add_into(part(a), std::span{part_sum}.subspan(first, count));
    first += count;
  }
  EXPECT_EQ(bits(parts), bits(whole));
  EXPECT_EQ(bits(part_sum), bits(whole_sum));
}

TEST(Elementwise, BackwardOfAScaleIsTheScale) {
  SeededNumbers numbers(5);
  const Floats x = numbers.floats(7), dy = numbers.floats(7);
  const Doubles wanted = numeric_gradient(
      [&](const Doubles& at) {
        Doubles y = at;
        for (double& value : y) value *= 0.75;
        return dot(y, dy);
      },
      widen(x));
  Floats dx(7);
  scale(dy, 0.75F, dx);
  expect_close(dx, wanted, 1e-7);
}

TEST(Elementwise, LengthsMustAgree) {
  Floats three(3), two(2);
  EXPECT_THROW(add(three, two, three), std::logic_error);
  EXPECT_THROW(add3(three, three, two, three), std::logic_error);
  EXPECT_THROW(add_into(two, three), std::logic_error);
  EXPECT_THROW(scale(two, 1, three), std::logic_error);
}

TEST(Rows, ColumnSumsAreAddedInFp64) {
  SeededNumbers numbers(6);
  for (const RowShape shape : row_shapes()) {
    const Floats x = numbers.floats(shape.size()), before = numbers.floats(shape.width);
    Floats sums = before;
    add_column_sums(x, shape, sums);
    for (std::size_t c = 0; c < shape.width; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < shape.rows; ++r)
        sum += static_cast<double>(x[r * shape.width + c]);
      ASSERT_EQ(sums[c], static_cast<float>(static_cast<double>(before[c]) + sum));
    }
  }
  // In fp32 the ones would be lost, one by one, beside 2^24.
  Floats many(1001, 1.0F), sum(1);
  many[0] = 0x1p24F;
  add_column_sums(many, {1001, 1}, sum);
  EXPECT_EQ(sum[0], 0x1p24F + 1000);
}

}  // namespace
}  // namespace rehearse::elementwise_test
