// The call of cublasLtMatmul. It counts columns first: read that way B is k × n as it lies, C is n
// × m and its own transpose, so that C' = B' A with B as the first factor, transposed.
#include "kernels/cuda/cuda_gemm_fp8.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>
#include <type_traits>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

struct DestroyProduct {
  void operator()(cublasLtMatmulDescOpaque_t* of) const { cublasLtMatmulDescDestroy(of); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayoutOpaque_t* of) const { cublasLtMatrixLayoutDestroy(of); }
};
using ProductHandle = std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyProduct>;
using LayoutHandle = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyLayout>;

template <class Value>
void set(const ProductHandle& product, cublasLtMatmulDescAttributes_t what, const Value& value) {
  CUBLAS_TRY(cublasLtMatmulDescSetAttribute(product.get(), what, &value, sizeof(value)));
}

// By columns, without gaps.
LayoutHandle layout(cudaDataType type, std::size_t rows, std::size_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  CUBLAS_TRY(
      cublasLtMatrixLayoutCreate(&made, type, rows, columns, static_cast<std::int64_t>(rows)));
  return LayoutHandle{made};
}

cudaDataType type_of(const DeviceFp8Matrix& matrix) {
  return matrix.format == Fp8Format::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

int capability_of(int device) {
  int major = 0, minor = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

constexpr int first_capability = 89;

void check(const Fp8Product& p, const DeviceFp8Matrix& a, const DeviceFp8Matrix& b) {
  int device = 0;
  CUDA_TRY(cudaGetDevice(&device));
  if (!multiplies_fp8(device))
    throw DeviceError(
        fmt::format("device {} (sm_{}) does not multiply fp8 numbers: sm_{} and later do", device,
                    capability_of(device), first_capability));
  if (p.m % 16 != 0 || p.n % 16 != 0 || p.k % 16 != 0)
    throw DeviceError(fmt::format(
        "a product of {} x {} x {} fp8 numbers: cuBLASLt wants multiples of 16", p.m, p.n, p.k));
  if (a.format == Fp8Format::e5m2 && b.format == Fp8Format::e5m2)
    throw DeviceError("a product of e5m2 and e5m2: one of them must be e4m3");
}

}  // namespace

bool multiplies_fp8(int device) { return capability_of(device) >= first_capability; }

void gemm_fp8(cublasContext* blas, CUstream_st* stream, const Fp8Product& p,
              const DeviceFp8Matrix& a, const DeviceFp8Matrix& b, float* c,
              std::span<std::byte> workspace) {
  check(p, a, b);
  if (p.m == 0 || p.n == 0 || p.k == 0) {
    if (p.m * p.n > 0) CUDA_TRY(cudaMemsetAsync(c, 0, p.m * p.n * sizeof(float), stream));
    return;
  }
  cublasLtMatmulDesc_t made = nullptr;
  CUBLAS_TRY(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const ProductHandle product{made};
  set(product, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(product, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (b.scale != nullptr) set(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b.scale);
  if (a.scale != nullptr) set(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a.scale);
  const LayoutHandle first = layout(type_of(b), p.k, p.n), second = layout(type_of(a), p.k, p.m);
  const LayoutHandle result = layout(CUDA_R_32F, p.n, p.m);
  const float one = 1, zero = 0;
  // Every cuBLAS handle is one of cuBLASLt, too. With no algorithm named it chooses, and remembers
  // its choice for the shape.
  CUBLAS_TRY(cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(blas), product.get(), &one, b.bits,
                            first.get(), a.bits, second.get(), &zero, c, result.get(), c,
                            result.get(), nullptr, workspace.data(), workspace.size(), stream));
}

}  // namespace rehearse
