// Top-k, sparse vectors, 8-bit codes and the look for infinities: the choices and bits of the CPU.
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/int8_gradients.hpp"
#include "kernels/math/loss_scale.hpp"
#include "kernels/math/sparse.hpp"
#include "kernels/math/top_k.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::selection_test {
namespace {

using Indices = std::vector<std::uint32_t>;

class Selection : public OnGpu {
 protected:
  Indices selected(const Floats& values, float threshold, std::size_t limit) {
    const DeviceArray<float> there{values}, gthreshold{Floats{threshold}};
    const DeviceArray<std::uint32_t> scratch{top_k_scratch_words(values.size())}, indices{limit},
        found{1};
    select_above(stream, there, gthreshold.data(), scratch, indices, found.data());
    Indices result = indices.values();
    result.resize(found.values()[0]);
    return result;
  }
};

// Many equals, zeros of both signs, infinities and a NaN.
Floats hard_values(std::size_t n, std::uint64_t seed) {
  SeededNumbers numbers(seed);
  Floats values(n);
  for (float& value : values)
    value = static_cast<float>(static_cast<double>(numbers.below(40)) - 20) / 8;
  if (n > 20) values[n / 3] = NAN, values[n / 2] = -INFINITY, values[n / 4] = -0.0F;
  return values;
}

TEST_F(Selection, ExactThresholdAndTopK) {
  for (const std::size_t n : {1, 2, 31, 300, 4096, 9001})
    for (const std::size_t k : {std::size_t{1}, n / 7 + 1, n / 2 + 1, n}) {
      if (k > n) continue;
      const Floats values = hard_values(n, n + k);
      const DeviceArray<float> there{values}, threshold{1};
      const DeviceArray<std::uint32_t> scratch{top_k_scratch_words(n)};
      exact_threshold(stream, there, k, scratch, threshold.data());
      const float got = threshold.values()[0];
      EXPECT_EQ(got, exact_threshold(values, k));
      EXPECT_EQ(selected(values, got, k), top_k(values, k));
    }
}

TEST_F(Selection, AThresholdThatLetsTooManyOrTooFewThrough) {
  SeededNumbers numbers(2);
  for (int i = 0; i < 12; ++i) {
    const std::size_t n = 1 + numbers.below(6000), limit = numbers.below(n);
    const Floats values = hard_values(n, numbers.below(1000));
    const auto threshold = static_cast<float>(numbers.below(24)) / 8;
    EXPECT_EQ(selected(values, threshold, limit), select_above(values, threshold, limit));
  }
}

TEST_F(Selection, TheSampleIsTheSame) {
  const Floats values = SeededNumbers{3}.floats(5003);
  const RandomWords words{.seed = 5, .stream = 6};
  const DeviceArray<float> there{values}, sample{97}, threshold{1};
  const DeviceArray<std::uint32_t> scratch{top_k_scratch_words(97)};
  sampled_threshold(stream, there, 50, words, sample, scratch, threshold.data());
  EXPECT_EQ(threshold.values()[0], sampled_threshold(values, 50, 97, words));
}

TEST_F(Selection, SparseVectorsAndCompression) {
  SeededNumbers numbers(4);
  for (const std::size_t n : {1, 40, 3000}) {
    Floats u = numbers.floats(n), v = numbers.floats(n);
    const Floats g = numbers.floats(n);
    const DeviceArray<float> gu{u}, gv{v}, gg{g};
    correct_momentum(g, 0.9F, {u, v});
    correct_momentum(stream, gg, 0.9F, {gu, gv});
    const Indices indices = top_k(v, n / 3 + 1);
    Floats taken(indices.size()), target = numbers.floats(n), gathered(indices.size());
    const DeviceArray<std::uint32_t> gindices{indices};
    const DeviceArray<float> gtaken{taken}, gtarget{target}, ggathered{gathered};
    take_out({u, v}, indices, taken);
    take_out(stream, {gu, gv}, gindices, gtaken);
    sparse_scatter_add(taken, indices, target);
    sparse_scatter_add(stream, gtaken, gindices, gtarget);
    sparse_gather(target, indices, gathered);
    sparse_gather(stream, gtarget, gindices, ggathered);
    EXPECT_EQ(bits(gu.values()), bits(u));
    EXPECT_EQ(bits(gv.values()), bits(v));
    EXPECT_EQ(bits(gtarget.values()), bits(target));
    EXPECT_EQ(bits(ggathered.values()), bits(gathered));
    sparse_clear(indices, target);
    sparse_clear(stream, gindices, gtarget);
    EXPECT_EQ(bits(gtarget.values()), bits(target));
  }
}

TEST_F(Selection, EightBitCodes) {
  SeededNumbers numbers(5);
  for (const std::size_t n : {0, 1, 255, 2500}) {
    const Floats x = numbers.floats(n);
    const float scale = int8_scale(x);
    std::vector<std::int8_t> codes(n);
    std::vector<std::int32_t> sums(n, 1000);
    Floats back(n);
    const DeviceArray<float> gx{x}, gscale{1}, gback{n};
    const DeviceArray<std::int8_t> gcodes{n};
    const DeviceArray<std::int32_t> gsums{sums};
    quantize(x, scale, codes);
    int8_scale(stream, gx, gscale.data());
    quantize(stream, gx, gscale.data(), gcodes);
    EXPECT_EQ(gscale.values()[0], scale);
    EXPECT_EQ(gcodes.values(), codes);
    dequantize(codes, scale, back);
    dequantize(stream, std::span<const std::int8_t>{gcodes.span()}, gscale.data(), gback);
    EXPECT_EQ(bits(gback.values()), bits(back));
    add_codes(codes, sums);
    add_codes(stream, gcodes, gsums);
    dequantize(sums, scale, back);
    dequantize(stream, std::span<const std::int32_t>{gsums.span()}, gscale.data(), gback);
    EXPECT_EQ(bits(gback.values()), bits(back));
  }
}

template <class Number>
void expect_found(cudaStream_t stream, Number one, Number infinity, Number nan) {
  for (const std::size_t n : {1, 7, 8, 9, 1000})
    for (const std::size_t shift : {0, 1}) {
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1})
        for (const Number bad : {one, infinity, nan}) {
          std::vector<Number> x(n, one);
          x[at] = bad;
          const DeviceArray<Number> there{x, shift};
          const DeviceArray<std::uint32_t> flag{Indices{0}};
          find_not_finite(stream, std::span<const Number>{there.span()}, flag.data());
          EXPECT_EQ(flag.values()[0] == 0, all_finite(std::span<const Number>{x}));
        }
    }
}

TEST_F(Selection, NotFinite) {
  expect_found<float>(stream, -3.4e38F, -INFINITY, NAN);
  expect_found<Fp16>(stream, to_fp16(-65504), to_fp16(INFINITY), to_fp16(NAN));
  expect_found<Bf16>(stream, to_bf16(3e38F), to_bf16(-INFINITY), to_bf16(NAN));
}

}  // namespace
}  // namespace rehearse::selection_test
