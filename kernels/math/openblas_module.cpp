// The call of OpenBLAS, in a module of its own: OpenBLAS starts its threads when it is loaded.
#include <cblas.h>

#include "kernels/math/gemm_module.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

void multiply(const MatrixProduct& p, const float* a, const float* b, float* c) {
  const auto count = [](std::size_t number) {
    ASSERT(number <= 0x7fffffff);
    return static_cast<blasint>(number);
  };
  const auto order = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasRowMajor, order(p.transpose_a), order(p.transpose_b), count(p.m), count(p.n),
              count(p.k), p.alpha, a, count(p.a_stride), b, count(p.b_stride), p.beta, c,
              count(p.c_stride));
}

const char* name() { return openblas_get_config(); }

constexpr BlasFunctions functions{multiply, name};

}  // namespace

}  // namespace rehearse

const rehearse::BlasFunctions* rehearse_openblas() {
  openblas_set_num_threads(1);  // a rank is one thread; it would start one for each core
  return &rehearse::functions;
}
