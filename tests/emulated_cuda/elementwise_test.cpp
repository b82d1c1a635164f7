// Sums, multiples, casts and dropout: the bits of the CPU references, for every length, aligned and
// not, in place and not.
#include "kernels/math/elementwise.hpp"

#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/step_state.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::elementwise_test {
namespace {

class Elementwise : public OnGpu {};

std::vector<std::size_t> odd_lengths() {
  std::vector<std::size_t> all = lengths();
  all.push_back(5000);  // more than one block, and a rest
  return all;
}

TEST_F(Elementwise, SumsAndMultiples) {
  SeededNumbers numbers(1);
  for (const std::size_t n : odd_lengths())
    for (const std::size_t shift : {0, 1}) {
      const Floats a = numbers.floats(n), b = numbers.floats(n), c = numbers.floats(n);
      const DeviceArray<float> da{a, shift}, db{b}, dc{c, shift}, dy{n, shift};
      Floats y(n);
      add(a, b, y);
      add(stream, da, db, dy);
      EXPECT_EQ(bits(dy.values()), bits(y));
      add3(a, b, c, y);
      add3(stream, da, db, dc, dy);
      EXPECT_EQ(bits(dy.values()), bits(y));
      add_into(stream, da, dy);
      add_into(a, y);
      EXPECT_EQ(bits(dy.values()), bits(y));
      scale(stream, dy, 0.3F, dy);
      scale(y, 0.3F, y);
      EXPECT_EQ(bits(dy.values()), bits(y));
      add_scaled(stream, dc, -1.7F, dy);
      add_scaled(c, -1.7F, y);
      EXPECT_EQ(bits(dy.values()), bits(y));
    }
}

TEST_F(Elementwise, TheFusedSumHasTheBitsOfTwo) {
  SeededNumbers numbers(2);
  const Floats a = numbers.floats(1001), b = numbers.floats(1001), c = numbers.floats(1001);
  const DeviceArray<float> da{a}, db{b}, dc{c}, fused{1001}, unfused{1001};
  add3(stream, da, db, dc, fused);
  add(stream, da, db, unfused);
  add(stream, unfused, dc, unfused);
  EXPECT_EQ(bits(fused.values()), bits(unfused.values()));
}

template <class Narrow>
void expect_narrow_sums(cudaStream_t stream, Narrow (*narrow)(float)) {
  SeededNumbers numbers(3);
  for (const std::size_t n : {0, 1, 33, 700}) {
    std::vector<Narrow> x(n), sum(n);
    for (Narrow& each : x) each = narrow(static_cast<float>(numbers.between(-300, 300)));
    for (Narrow& each : sum) each = narrow(static_cast<float>(numbers.between(-300, 300)));
    const DeviceArray<Narrow> dx{x}, dsum{sum};
    add_into(stream, dx, dsum);
    for (std::size_t i = 0; i < n; ++i) sum[i] = narrow(to_float(sum[i]) + to_float(x[i]));
    EXPECT_EQ(dsum.values(), sum);
  }
}

TEST_F(Elementwise, SumsIn16Bits) {
  expect_narrow_sums<Fp16>(stream, to_fp16);
  expect_narrow_sums<Bf16>(stream, to_bf16);
}

// Everything that rounding can meet: patterns over the whole of fp32, infinities, NaN, ties.
Floats hard_numbers() {
  Floats values{0.0F,     -0.0F,    INFINITY,   -INFINITY, 65504,    65519.9F,
                65520,    448,      464,        480,       57344,    61440,
                0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1p-149F, -0x1p-9F, 0x1p-10F};
  for (std::uint64_t pattern = 7; pattern < 1ULL << 32; pattern += 1048573)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(pattern)));
  return values;
}

template <class Narrow, class... Range>
void expect_casts(cudaStream_t stream, Range... range) {
  const Floats values = hard_numbers();
  for (const std::size_t shift : {0, 1}) {
    std::vector<Narrow> narrow(values.size());
    Floats back(values.size());
    cast(values, narrow, range...);
    cast(narrow, back);
    const DeviceArray<float> wide{values, shift}, wide_back{values.size(), shift};
    const DeviceArray<Narrow> narrow_there{values.size(), shift};
    cast(stream, wide, narrow_there.span(), range...);
    EXPECT_EQ(narrow_there.values(), narrow);
    cast(stream, std::span<const Narrow>{narrow_there.span()}, wide_back);
    const Floats got = wide_back.values();
    for (std::size_t i = 0; i < back.size(); ++i)  // the payload of a NaN is the device's own
      ASSERT_TRUE(std::isnan(back[i]) ? std::isnan(got[i]) : got[i] == back[i]) << i;
  }
}

TEST_F(Elementwise, Casts) {
  expect_casts<Fp16>(stream);
  expect_casts<Bf16>(stream);
  expect_casts<E4m3>(stream, Fp8Range::saturate);
  expect_casts<E4m3>(stream, Fp8Range::overflow);
  expect_casts<E5m2>(stream, Fp8Range::saturate);
  expect_casts<E5m2>(stream, Fp8Range::overflow);
}

TEST_F(Elementwise, DropoutHasTheSameMask) {
  SeededNumbers numbers(4);
  for (const std::size_t n : odd_lengths())
    for (const double p : {0.0, 0.1, 0.5, 1.0}) {
      const Dropout mask{p, {.seed = 77, .stream = n}, (1ULL << 40) + numbers.below(9)};
      const Floats x = numbers.floats(n), residual = numbers.floats(n);
      Floats y(n), sum(n);
      dropout(x, mask, y);
      dropout_add(x, residual, mask, sum);
      const DeviceArray<float> dx{x}, dr{residual}, dy{n}, dsum{n};
      dropout(stream, dx, mask, dy);
      dropout_add(stream, dx, dr, mask, dsum);
      EXPECT_EQ(bits(dy.values()), bits(y));
      EXPECT_EQ(bits(dsum.values()), bits(sum));
    }
}

// What a rank holds of a tensor, in the middle of a training.
TEST_F(Elementwise, DropoutOfRunsInAStep) {
  SeededNumbers numbers(5);
  const StepState state{.taken = 6, .skipped = 3};
  const DeviceArray<StepState> step{std::vector{state}};
  for (const std::size_t block : {1, 2, 3, 4, 5, 7, 64, 333})
    for (const std::size_t runs : {1, 2, 9}) {
      const std::size_t stride = block + numbers.below(11), n = runs * block;
      Dropout mask{0.3, {.seed = 78, .stream = block}, numbers.below(1000)};
      const Floats x = numbers.floats(n);
      const DeviceArray<float> dx{x}, dy{n};
      dropout(stream, dx, step.data(), mask, {block, stride}, dy);
      Floats y(n);
      mask.words.stream += 9 * dropout_streams_of_step;
      for (std::size_t at = 0; at < n; at += block, mask.first += stride)
        dropout(std::span{x}.subspan(at, block), mask, std::span{y}.subspan(at, block));
      EXPECT_EQ(bits(dy.values()), bits(y)) << block << " numbers " << runs << " times";
    }
}

}  // namespace
}  // namespace rehearse::elementwise_test
