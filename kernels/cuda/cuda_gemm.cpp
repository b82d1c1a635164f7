// The call of cublasGemmEx.
#include "kernels/cuda/cuda_gemm.hpp"

#include <cublas_v2.h>

#include <cstdint>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

cudaDataType type_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return CUDA_R_32F;
    case Precision::fp16:
      return CUDA_R_16F;
    case Precision::bf16:
      return CUDA_R_16BF;
    case Precision::fp8:
    case Precision::int8:
      break;
  }
  throw DeviceError("a matrix product in fp8 is one of its own (gemm_fp8)");
}

int whole(std::size_t number) {
  ASSERT(number <= INT32_MAX);
  return static_cast<int>(number);
}

// 0 stands for rows without gaps; of an empty matrix cuBLAS still wants 1.
int stride_of(std::size_t stride, std::size_t width) {
  return whole(stride > 0 ? stride : width > 0 ? width : 1);
}

}  // namespace

void gemm(cublasContext* blas, CUstream_st* stream, const MatrixProduct& p, DeviceMatrix a,
          DeviceMatrix b, DeviceMatrix c) {
  if (p.m == 0 || p.n == 0) return;
  ASSERT(type_of(a.precision) == type_of(b.precision));
  const auto order = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const bool is_tf32 = a.precision == Precision::tf32;
  CUBLAS_TRY(cublasSetStream(blas, stream));
  CUBLAS_TRY(cublasGemmEx(
      blas, order(p.transpose_b), order(p.transpose_a), whole(p.n), whole(p.m), whole(p.k),
      &p.alpha, b.numbers, type_of(b.precision), stride_of(p.b_stride, p.transpose_b ? p.k : p.n),
      a.numbers, type_of(a.precision), stride_of(p.a_stride, p.transpose_a ? p.m : p.k), &p.beta,
      const_cast<void*>(c.numbers), type_of(c.precision), stride_of(p.c_stride, p.n),
      is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

}  // namespace rehearse
