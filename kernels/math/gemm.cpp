// The loops that stand in for OpenBLAS, and the way to it.
#include "kernels/math/gemm.hpp"

#include "kernels/math/gemm_module.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/module.hpp"

namespace rehearse {

namespace {

// A stored matrix with all of its strides known.
struct Stored {
  std::size_t rows = 0, width = 0, stride = 0;

  bool fits(std::size_t numbers) const {
    return stride >= width && (rows == 0 || width == 0 || (rows - 1) * stride + width <= numbers);
  }
};

Stored stored(std::size_t rows, std::size_t width, std::size_t stride, bool transposed) {
  const std::size_t stored_width = transposed ? rows : width;
  return {transposed ? width : rows, stored_width, stride == 0 ? stored_width : stride};
}

struct Operands {
  Stored a, b, c;
};

Operands checked(const MatrixProduct& p, std::span<const float> a, std::span<const float> b,
                 std::span<const float> c) {
  const Operands operands{stored(p.m, p.k, p.a_stride, p.transpose_a),
                          stored(p.k, p.n, p.b_stride, p.transpose_b),
                          stored(p.m, p.n, p.c_stride, false)};
  ASSERT(operands.a.fits(a.size()) && operands.b.fits(b.size()) && operands.c.fits(c.size()));
  return operands;
}

// nullptr: there is none. Loaded once, for all threads.
const BlasFunctions* openblas() {
  static const BlasFunctions* const functions = [] {
    const auto load = module_function<decltype(rehearse_openblas)>({"openblas", "libopenblas-dev"});
    return load == nullptr ? nullptr : load();
  }();
  return functions;
}

}  // namespace

void gemm_plain(const MatrixProduct& p, std::span<const float> a, std::span<const float> b,
                std::span<float> c) {
  const Operands at = checked(p, a, b, c);
  // op(A)(i, l) and op(B)(l, j), as steps through the stored numbers.
  const std::size_t a_row = p.transpose_a ? 1 : at.a.stride;
  const std::size_t a_column = p.transpose_a ? at.a.stride : 1;
  const std::size_t b_row = p.transpose_b ? 1 : at.b.stride;
  const std::size_t b_column = p.transpose_b ? at.b.stride : 1;
  for (std::size_t i = 0; i < p.m; ++i) {
    for (std::size_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < p.k; ++l)
        sum += static_cast<double>(a[i * a_row + l * a_column]) *
               static_cast<double>(b[l * b_row + j * b_column]);
      float& result = c[i * at.c.stride + j];
      const double kept =
          p.beta == 0 ? 0 : static_cast<double>(p.beta) * static_cast<double>(result);
      result = static_cast<float>(static_cast<double>(p.alpha) * sum + kept);
    }
  }
}

void gemm(const MatrixProduct& p, std::span<const float> a, std::span<const float> b,
          std::span<float> c) {
  const BlasFunctions* const blas = openblas();
  if (blas == nullptr) return gemm_plain(p, a, b, c);
  const Operands at = checked(p, a, b, c);
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return gemm_plain(p, a, b, c);  // its strides may be 0, which BLAS refuses
  MatrixProduct with_strides = p;
  with_strides.a_stride = at.a.stride;
  with_strides.b_stride = at.b.stride;
  with_strides.c_stride = at.c.stride;
  blas->multiply(with_strides, a.data(), b.data(), c.data());
}

std::string_view gemm_library() {
  const BlasFunctions* const blas = openblas();
  return blas == nullptr ? "plain" : blas->name();
}

}  // namespace rehearse
