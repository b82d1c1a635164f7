// cublasLtMatmul over the emulated devices, for fp8 factors and what it documents of them: the
// first factor transposed, the second not, multiples of 16, aligned to 16 bytes, not e5m2 twice,
// sm_89.
#include <cublasLt.h>
#include <fmt/format.h>

#include <cstring>

#include "kernels/math/number_formats.hpp"
#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

namespace {

struct Description {
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  const float *a_scale = nullptr, *b_scale = nullptr;
};
struct Layout {
  cudaDataType type{};
  std::size_t rows = 0, columns = 0;
  std::int64_t stride = 0;
};

template <class Value>
Value& inside(void* opaque) {
  return *static_cast<Value*>(opaque);
}

std::string wrong(const Description& how, const Layout& a, const Layout& b, const Layout& d) {
  const auto is_fp8 = [](cudaDataType type) {
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
  };
  if (!is_fp8(a.type) || !is_fp8(b.type) || d.type != CUDA_R_32F) return "other types";
  if (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) return "e5m2 twice";
  if (how.transpose_a != CUBLAS_OP_T || how.transpose_b != CUBLAS_OP_N) return "another order";
  if (a.rows % 16 != 0 || a.columns % 16 != 0 || b.columns % 16 != 0) return "no multiples of 16";
  if (a.rows != b.rows || d.rows != a.columns || d.columns != b.columns) return "other shapes";
  for (const Layout* each : {&a, &b, &d})
    if (each->stride != static_cast<std::int64_t>(each->rows)) return "gaps between columns";
  return {};
}

double number(const void* numbers, const Layout& layout, std::size_t row, std::size_t column) {
  const std::uint8_t bits = static_cast<const std::uint8_t*>(numbers)[row + column * layout.rows];
  return static_cast<double>(layout.type == CUDA_R_8F_E4M3
                                 ? to_float(static_cast<rehearse::E4m3>(bits))
                                 : to_float(static_cast<rehearse::E5m2>(bits)));
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

extern "C" {

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType scale) {
  const std::lock_guard guard{lock()};
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t));
  *made = new cublasLtMatmulDescOpaque_t{};
  new (*made) Description;
  state().other_handles.insert(*made);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) {
  const std::lock_guard guard{lock()};
  if (state().other_handles.erase(of) == 0) return CUBLAS_STATUS_INVALID_VALUE;
  delete of;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void* value, std::size_t bytes) {
  auto& how = inside<Description>(of);
  const auto take = [&](auto& into) {
    if (bytes != sizeof(into)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&into, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(how.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(how.transpose_b);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return take(how.a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return take(how.b_scale);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t stride) {
  const std::lock_guard guard{lock()};
  static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
  *made = new cublasLtMatrixLayoutOpaque_t{};
  new (*made) Layout{type, rows, columns, stride};
  state().other_handles.insert(*made);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) {
  const std::lock_guard guard{lock()};
  if (state().other_handles.erase(of) == 0) return CUBLAS_STATUS_INVALID_VALUE;
  delete of;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  const Description how = inside<Description>(product);
  const Layout first = inside<Layout>(a_layout), second = inside<Layout>(b_layout);
  const Layout result = inside<Layout>(d_layout);
  const int device = resolve(stream)->device;
  const Memory& memory = state().memory;
  const auto is_there = [&](const void* numbers, std::size_t bytes) {
    return memory.owner(numbers) == device && memory.holds(numbers, bytes) &&
           reinterpret_cast<std::uintptr_t>(numbers) % 16 == 0;
  };
  std::string reason = wrong(how, first, second, result);
  if (state().options.capability < 89) reason = "a device without fp8";
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0 || c != d)
    reason = "other factors than 1 and 0";
  if (!is_there(a, first.rows * first.columns) || !is_there(b, second.rows * second.columns) ||
      !is_there(d, 4 * result.rows * result.columns) ||
      (workspace_bytes > 0 && !is_there(workspace, workspace_bytes)))
    reason = "memory that is too short, elsewhere or not aligned to 16 bytes";
  if (!reason.empty()) {
    complain("cublasLtMatmul: " + reason);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  submit(*resolve(stream), "cublasLtMatmul", [=] {
    const Memory::Access open{state().memory, {&device, 1}};
    const auto scale = [](const float* at) { return at != nullptr ? *at : 1.0F; };
    for (std::size_t column = 0; column < result.columns; ++column)
      for (std::size_t row = 0; row < result.rows; ++row) {
        double sum = 0;
        for (std::size_t i = 0; i < first.rows; ++i)
          sum += number(a, first, i, row) * number(b, second, i, column);
        static_cast<float*>(d)[row + column * result.rows] =
            static_cast<float>(sum) * scale(how.a_scale) * scale(how.b_scale);
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
