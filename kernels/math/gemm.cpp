// The call of OpenBLAS, and the loops that stand in for it.
#include "kernels/math/gemm.hpp"

#ifdef REHEARSE_HAS_OPENBLAS
#include <cblas.h>
#endif

#include "sim/base/assert.hpp"

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

#ifdef REHEARSE_HAS_OPENBLAS

void gemm(const MatrixProduct& p, std::span<const float> a, std::span<const float> b,
          std::span<float> c) {
  const Operands at = checked(p, a, b, c);
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return gemm_plain(p, a, b, c);  // its strides may be 0, which BLAS refuses
  // A rank is one thread; OpenBLAS would start one for each core. Once for the process.
  [[maybe_unused]] static const bool alone = (openblas_set_num_threads(1), true);
  const auto count = [](std::size_t number) {
    ASSERT(number <= 0x7fffffff);
    return static_cast<blasint>(number);
  };
  const auto order = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasRowMajor, order(p.transpose_a), order(p.transpose_b), count(p.m), count(p.n),
              count(p.k), p.alpha, a.data(), count(at.a.stride), b.data(), count(at.b.stride),
              p.beta, c.data(), count(at.c.stride));
}

std::string_view gemm_library() { return openblas_get_config(); }

#else

void gemm(const MatrixProduct& p, std::span<const float> a, std::span<const float> b,
          std::span<float> c) {
  gemm_plain(p, a, b, c);
}

std::string_view gemm_library() { return "plain"; }

#endif

}  // namespace rehearse
