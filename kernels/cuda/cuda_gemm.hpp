// Matrix products on a GPU, by cuBLAS: the same MatrixProduct as kernels/math/gemm.hpp, whose
// header says how row order becomes cuBLAS's column order.
#pragma once

#include "kernels/math/gemm.hpp"
#include "sim/base/precision.hpp"

struct CUstream_st;
struct cublasContext;

namespace rehearse {

/// A matrix on the device, and how its numbers are stored. TF32 is stored as fp32 and multiplied on
/// tensor cores with 10 bits of the fraction.
struct DeviceMatrix {
  const void* numbers = nullptr;
  Precision precision = Precision::fp32;
};

/// C = alpha op(A) op(B) + beta C with sums in fp32. A and B have one precision; C has theirs or
/// fp32.
void gemm(cublasContext* blas, CUstream_st* stream, const MatrixProduct& product, DeviceMatrix a,
          DeviceMatrix b, DeviceMatrix c);

}  // namespace rehearse
