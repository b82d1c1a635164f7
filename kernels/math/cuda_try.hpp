// CUDA_TRY, NCCL_TRY, CUBLAS_TRY: a call that failed becomes a DeviceError with the call's own text
// and its place. For .cu files, and .cpp files that include the library in question.
#pragma once

#include <string_view>

namespace rehearse {

/// "kernels/x.cu:12: cudaMalloc(…): out of memory (cudaErrorMemoryAllocation)"
[[noreturn]] void device_call_failed(std::string_view call, std::string_view why, const char* file,
                                     int line);

}  // namespace rehearse

#define CUDA_TRY(call)                                                                            \
  do {                                                                                            \
    if (const cudaError_t cuda_result = (call); cuda_result != cudaSuccess)                       \
      ::rehearse::device_call_failed(#call, cudaGetErrorString(cuda_result), __FILE__, __LINE__); \
  } while (false)

#define NCCL_TRY(call)                                                                            \
  do {                                                                                            \
    if (const ncclResult_t nccl_result = (call); nccl_result != ncclSuccess)                      \
      ::rehearse::device_call_failed(#call, ncclGetErrorString(nccl_result), __FILE__, __LINE__); \
  } while (false)

#define CUBLAS_TRY(call)                                                                     \
  do {                                                                                       \
    if (const cublasStatus_t cublas_result = (call); cublas_result != CUBLAS_STATUS_SUCCESS) \
      ::rehearse::device_call_failed(#call, cublasGetStatusString(cublas_result), __FILE__,  \
                                     __LINE__);                                              \
  } while (false)
