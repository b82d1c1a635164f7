// Matrix products: the plain loops against the definition in fp64, the library against the loops.
#include "kernels/math/gemm.hpp"

#include <limits>

#include "tests/kernels/numbers.hpp"

namespace rehearse::gemm_test {
namespace {

struct Sizes {
  std::size_t m, n, k;
};
std::vector<Sizes> all_sizes() {
  std::vector<Sizes> all{{0, 0, 0}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0},   {1, 1, 1},
                         {1, 5, 3}, {7, 1, 4}, {5, 6, 7}, {33, 17, 9}, {64, 65, 63}};
  SeededNumbers numbers(70);
  for (int i = 0; i < 8; ++i)
    all.push_back({numbers.below(40), numbers.below(40), numbers.below(40)});
  return all;
}

struct Product {
  MatrixProduct shape;
  Floats a, b, c;
};

// Stored matrices with rows further apart than they are wide by `gap`.
Product random_product(Sizes sizes, bool transpose_a, bool transpose_b, std::size_t gap,
                       SeededNumbers& numbers) {
  const std::size_t a_rows = transpose_a ? sizes.k : sizes.m;
  const std::size_t a_width = transpose_a ? sizes.m : sizes.k;
  const std::size_t b_rows = transpose_b ? sizes.n : sizes.k;
  const std::size_t b_width = transpose_b ? sizes.k : sizes.n;
  MatrixProduct shape{.m = sizes.m,
                      .n = sizes.n,
                      .k = sizes.k,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .alpha = 0.5F,
                      .beta = -0.25F};
  if (gap > 0) {
    shape.a_stride = a_width + gap;
    shape.b_stride = b_width + gap;
    shape.c_stride = sizes.n + gap;
  }
  return {shape, numbers.floats(a_rows * (a_width + gap)), numbers.floats(b_rows * (b_width + gap)),
          numbers.floats(sizes.m * (sizes.n + gap))};
}

Doubles by_definition(const Product& product) {
  const MatrixProduct& p = product.shape;
  const std::size_t a_stride = p.a_stride != 0 ? p.a_stride : p.transpose_a ? p.m : p.k;
  const std::size_t b_stride = p.b_stride != 0 ? p.b_stride : p.transpose_b ? p.k : p.n;
  const std::size_t c_stride = p.c_stride != 0 ? p.c_stride : p.n;
  Doubles c = widen(product.c);
  for (std::size_t i = 0; i < p.m; ++i)
    for (std::size_t j = 0; j < p.n; ++j) {
      double& result = c[i * c_stride + j];
      result *= static_cast<double>(p.beta);
      for (std::size_t l = 0; l < p.k; ++l) {
        const float a = product.a[p.transpose_a ? l * a_stride + i : i * a_stride + l];
        const float b = product.b[p.transpose_b ? j * b_stride + l : l * b_stride + j];
        result += static_cast<double>(p.alpha) * static_cast<double>(a) * static_cast<double>(b);
      }
    }
  return c;
}

TEST(Gemm, IsTheDefinition) {
  SeededNumbers numbers(71);
  for (const Sizes sizes : all_sizes())
    for (const int mode : {0, 1, 2, 3})
      for (const std::size_t gap : {0U, 3U}) {
        const Product product =
            random_product(sizes, (mode & 1) != 0, (mode & 2) != 0, gap, numbers);
        const Doubles wanted = by_definition(product);
        Floats plain = product.c, library = product.c;
        gemm_plain(product.shape, product.a, product.b, plain);
        gemm(product.shape, product.a, product.b, library);
        expect_close(plain, wanted, 1e-7);    // gaps are left alone too
        expect_close(library, wanted, 1e-5);  // sums of up to 63 products in fp32
      }
}

TEST(Gemm, TheThreeProductsOfALayer) {
  SeededNumbers numbers(72);
  const std::size_t tokens = 5, in = 7, out = 3;
  const Floats x = numbers.floats(tokens * in), w = numbers.floats(in * out);
  const Floats dy = numbers.floats(tokens * out), before = numbers.floats(in * out);
  Floats y(tokens * out), dx(tokens * in), dw = before;
  gemm({.m = tokens, .n = out, .k = in}, x, w, y);
  gemm({.m = tokens, .n = in, .k = out, .transpose_b = true}, dy, w, dx);
  gemm({.m = in, .n = out, .k = tokens, .transpose_a = true, .beta = 1}, x, dy, dw);
  const auto forward = [&](const Doubles& input, const Doubles& weight) {
    Doubles result(tokens * out);
    for (std::size_t i = 0; i < tokens * out; ++i)
      for (std::size_t l = 0; l < in; ++l)
        result[i] += input[i / out * in + l] * weight[l * out + i % out];
    return result;
  };
  const Doubles wx = widen(x), ww = widen(w);
  expect_close(y, forward(wx, ww), 1e-6);
  expect_close(
      dx, numeric_gradient([&](const Doubles& at) { return dot(forward(at, ww), dy); }, wx), 5e-6);
  Doubles wanted =
      numeric_gradient([&](const Doubles& at) { return dot(forward(wx, at), dy); }, ww);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += static_cast<double>(before[i]);
  expect_close(dw, wanted, 5e-6);
}

TEST(Gemm, WithBetaZeroTheOldNumbersAreNotRead) {
  const Floats a{1, 2}, b{3, 4};
  for (const auto product : {gemm, gemm_plain}) {
    Floats c{std::numeric_limits<float>::quiet_NaN()};
    product({.m = 1, .n = 1, .k = 2}, a, b, c);
    EXPECT_EQ(c[0], 11);
    c[0] = std::numeric_limits<float>::quiet_NaN();
    product({.m = 1, .n = 1, .k = 0}, {}, {}, c);
    EXPECT_EQ(c[0], 0);
  }
}

TEST(Gemm, TheSameBitsOnEveryRun) {
  SeededNumbers numbers(73);
  const Product product = random_product({61, 67, 129}, false, true, 0, numbers);
  Floats first = product.c;
  gemm(product.shape, product.a, product.b, first);
  for (int run = 0; run < 5; ++run) {
    Floats again = product.c;
    gemm(product.shape, product.a, product.b, again);
    ASSERT_EQ(bits(again), bits(first));
  }
  EXPECT_FALSE(gemm_library().empty());
}

TEST(Gemm, SpansMustHoldTheMatrices) {
  const Floats four(4), three(3);
  Floats c(4);
  EXPECT_THROW(gemm({.m = 2, .n = 2, .k = 2}, four, three, c), std::logic_error);
  EXPECT_THROW(gemm({.m = 2, .n = 2, .k = 2, .a_stride = 1}, four, four, c), std::logic_error);
  EXPECT_THROW(gemm({.m = 2, .n = 2, .k = 2, .c_stride = 3}, four, four, c), std::logic_error);
}

}  // namespace
}  // namespace rehearse::gemm_test
