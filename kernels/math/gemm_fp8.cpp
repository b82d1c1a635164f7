// Sums in fp64, rounded once.
#include "kernels/math/gemm_fp8.hpp"

#include "kernels/math/number_formats.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

double number(const Fp8Matrix& matrix, std::size_t i) {
  const std::uint8_t bits = matrix.bits[i];
  return static_cast<double>(matrix.format == Fp8Format::e4m3 ? to_float(static_cast<E4m3>(bits))
                                                              : to_float(static_cast<E5m2>(bits)));
}

}  // namespace

void gemm_fp8(const Fp8Product& p, const Fp8Matrix& a, const Fp8Matrix& b, std::span<float> c) {
  ASSERT(a.bits.size() == p.m * p.k && b.bits.size() == p.n * p.k && c.size() == p.m * p.n);
  ASSERT(a.format == Fp8Format::e4m3 || b.format == Fp8Format::e4m3);
  const double scale = static_cast<double>(a.scale) * static_cast<double>(b.scale);
  for (std::size_t row = 0; row < p.m; ++row)
    for (std::size_t column = 0; column < p.n; ++column) {
      double sum = 0;
      for (std::size_t i = 0; i < p.k; ++i)
        sum += number(a, row * p.k + i) * number(b, column * p.k + i);
      c[row * p.n + column] = static_cast<float>(scale * sum);
    }
}

}  // namespace rehearse
