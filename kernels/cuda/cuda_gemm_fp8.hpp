// Products of fp8 numbers on a GPU, by cuBLASLt: the same as kernels/math/gemm_fp8.hpp, on devices
// from sm_89 on (Ada, Hopper, Blackwell).
#pragma once

#include <cstddef>
#include <span>

#include "kernels/math/gemm_fp8.hpp"

struct CUstream_st;
struct cublasContext;

namespace rehearse {

struct DeviceFp8Matrix {
  const void* bits = nullptr;
  Fp8Format format = Fp8Format::e4m3;
  const float* scale = nullptr;  // on the device; null: 1
};

/// Whether the device has tensor cores for them.
bool multiplies_fp8(int device);

/// cuBLASLt wants m, n and k to be multiples of 16. Throws DeviceError where they are not, or on a
/// device that has no fp8. The workspace may be empty.
void gemm_fp8(cublasContext* blas, CUstream_st* stream, const Fp8Product& product,
              const DeviceFp8Matrix& a, const DeviceFp8Matrix& b, float* c,
              std::span<std::byte> workspace);

}  // namespace rehearse
