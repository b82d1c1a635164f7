// cuBLAS's matrix product over the emulated devices: column order, sums in fp64, rounded once.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <bit>
#include <cstdint>

#include "kernels/math/number_formats.hpp"
#include "tests/emulated_cuda/state.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  int device = 0;
};

namespace emulated_cuda {

namespace {

std::size_t bytes_of(cudaDataType type) { return type == CUDA_R_32F ? 4 : 2; }
bool is_known(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

// TF32 keeps 10 bits of the fraction, rounded to nearest with ties away from zero.
float as_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x1000) & ~std::uint32_t{0x1fff});
}

struct Matrix {
  const void* numbers;
  cudaDataType type;
  int stride;
  bool is_transposed;

  std::size_t at(int row, int column) const {
    const auto fast = static_cast<std::size_t>(is_transposed ? column : row);
    const auto slow = static_cast<std::size_t>(is_transposed ? row : column);
    return fast + slow * static_cast<std::size_t>(stride);
  }
  double operator()(int row, int column) const {
    const std::size_t i = at(row, column);
    if (type == CUDA_R_16F)
      return static_cast<double>(to_float(static_cast<const rehearse::Fp16*>(numbers)[i]));
    if (type == CUDA_R_16BF)
      return static_cast<double>(to_float(static_cast<const rehearse::Bf16*>(numbers)[i]));
    return static_cast<double>(static_cast<const float*>(numbers)[i]);
  }
  // As who acts now: every number of it.
  void touch(int rows, int columns, void (*how)(const void*, std::size_t)) const {
    const int length = is_transposed ? columns : rows, count = is_transposed ? rows : columns;
    for (int i = 0; i < count; ++i)
      how(static_cast<const std::byte*>(numbers) +
              static_cast<std::size_t>(i) * static_cast<std::size_t>(stride) * bytes_of(type),
          static_cast<std::size_t>(length) * bytes_of(type));
  }
  // How many bytes a matrix of so many rows and columns takes.
  std::size_t bytes(int rows, int columns) const {
    return rows == 0 || columns == 0 ? 0 : (at(rows - 1, columns - 1) + 1) * bytes_of(type);
  }
};

void store(void* numbers, cudaDataType type, std::size_t i, double value) {
  const auto rounded = static_cast<float>(value);
  if (type == CUDA_R_16F)
    static_cast<rehearse::Fp16*>(numbers)[i] = rehearse::to_fp16(rounded);
  else if (type == CUDA_R_16BF)
    static_cast<rehearse::Bf16*>(numbers)[i] = rehearse::to_bf16(rounded);
  else
    static_cast<float*>(numbers)[i] = rounded;
}

struct Product {
  int m, n, k;
  float alpha, beta;
  bool is_tf32;
  Matrix a, b, c;
};

void multiply(const Product& p) {
  const auto factor = [&](double value) {
    return p.is_tf32 ? static_cast<double>(as_tf32(static_cast<float>(value))) : value;
  };
  for (int column = 0; column < p.n; ++column)
    for (int row = 0; row < p.m; ++row) {
      double sum = 0;
      for (int i = 0; i < p.k; ++i) sum += factor(p.a(row, i)) * factor(p.b(i, column));
      const double kept = p.beta == 0 ? 0 : static_cast<double>(p.beta) * p.c(row, column);
      store(const_cast<void*>(p.c.numbers), p.c.type, p.c.at(row, column),
            static_cast<double>(p.alpha) * sum + kept);
    }
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

extern "C" {

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const std::lock_guard guard{lock()};
  *handle = new cublasContext{nullptr, current_device()};
  state().other_handles.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const std::lock_guard guard{lock()};
  if (state().other_handles.erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int a_stride, const void* b,
                            cudaDataType b_type, int b_stride, const void* beta, void* c,
                            cudaDataType c_type, int c_stride, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  const std::lock_guard guard{lock()};
  const bool is_tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!is_known(a_type) || !is_known(b_type) || !is_known(c_type) ||
      (compute != CUBLAS_COMPUTE_32F && !is_tf32))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const Product product{m,
                        n,
                        k,
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        is_tf32,
                        {a, a_type, a_stride, transpose_a != CUBLAS_OP_N},
                        {b, b_type, b_stride, transpose_b != CUBLAS_OP_N},
                        {c, c_type, c_stride, false}};
  const int device = resolve(handle->stream)->device;
  const auto fits = [&](const Matrix& matrix, int rows, int columns) {
    const std::size_t bytes = matrix.bytes(rows, columns);
    return matrix.stride >= (matrix.is_transposed ? columns : rows) &&
           (bytes == 0 || (state().memory.owner(matrix.numbers) == device &&
                           state().memory.holds(matrix.numbers, bytes)));
  };
  if (m < 0 || n < 0 || k < 0 || !fits(product.a, m, k) || !fits(product.b, k, n) ||
      !fits(product.c, m, n) || handle->device != device) {
    complain(
        fmt::format("cublasGemmEx of {} x {} x {}: a matrix is too short or elsewhere", m, n, k));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  submit(*resolve(handle->stream), "cublasGemmEx", [=, on = resolve(handle->stream)] {
    const Memory::Access open{state().memory, {&device, 1}};
    multiply(product);
    const As turn{on->actor};
    product.a.touch(m, k, reads);
    product.b.touch(k, n, reads);
    product.c.touch(m, n, writes);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
