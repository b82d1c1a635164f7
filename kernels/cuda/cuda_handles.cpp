// Making is checked; destroying is not: after a failure it can only fail again.
#include "kernels/cuda/cuda_handles.hpp"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

void DestroyStream::operator()(CUstream_st* stream) const { cudaStreamDestroy(stream); }
void DestroyEvent::operator()(CUevent_st* event) const { cudaEventDestroy(event); }
void DestroyGraphRun::operator()(CUgraphExec_st* graph) const { cudaGraphExecDestroy(graph); }
void FreeDeviceMemory::operator()(std::byte* memory) const { cudaFree(memory); }
void DestroyBlas::operator()(cublasContext* handle) const { cublasDestroy(handle); }
void AbortCommunicator::operator()(ncclComm* communicator) const { ncclCommAbort(communicator); }

StreamHandle make_stream(int device) {
  CUDA_TRY(cudaSetDevice(device));
  cudaStream_t stream = nullptr;
  CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return StreamHandle{stream};
}

EventHandle make_event(int device, bool with_time) {
  CUDA_TRY(cudaSetDevice(device));
  cudaEvent_t event = nullptr;
  CUDA_TRY(cudaEventCreateWithFlags(&event, with_time ? cudaEventDefault : cudaEventDisableTiming));
  return EventHandle{event};
}

DeviceBlock make_block(int device, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  CUDA_TRY(cudaSetDevice(device));
  void* memory = nullptr;
  if (const cudaError_t error = cudaMalloc(&memory, bytes); error != cudaSuccess)
    throw DeviceError(fmt::format("device {}: cannot have {} bytes: {}", device, bytes,
                                  cudaGetErrorString(error)));
  DeviceBlock block{static_cast<std::byte*>(memory)};
  // On the default stream, which the others do not wait for.
  CUDA_TRY(cudaMemsetAsync(memory, 0, bytes, nullptr));
  CUDA_TRY(cudaStreamSynchronize(nullptr));
  return block;
}

BlasHandle make_blas(int device) {
  CUDA_TRY(cudaSetDevice(device));
  cublasHandle_t handle = nullptr;
  CUBLAS_TRY(cublasCreate(&handle));
  return BlasHandle{handle};
}

std::string place_of_device(int device) {
  char text[32] = {};
  CUDA_TRY(cudaDeviceGetPCIBusId(text, sizeof text, device));
  return text;
}

// No driver (35), a stub of it (34), a driver without a card (100): all are "no usable GPU".
int device_count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess)
    throw NothingToRunOn(fmt::format("no usable GPU: {} (CUDA error {})", cudaGetErrorString(error),
                                     static_cast<int>(error)));
  if (count == 0) throw NothingToRunOn("no usable GPU: CUDA sees no device");
  return count;
}

std::string cupti_library() { return fmt::format("libcupti.so.{}", CUDART_VERSION / 1000); }

}  // namespace rehearse
