// Devices, memory and copies of the emulated CUDA runtime.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "tests/emulated_cuda/graphs.hpp"
#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

namespace {

bool is_device(int device) { return device >= 0 && device < state().options.devices; }

bool is_direction_right(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

bool is_whole(const void* address, std::size_t bytes) {
  return state().memory.owner(address) < 0 || bytes == 0 || state().memory.holds(address, bytes);
}

cudaError_t enqueue_copy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                         cudaStream_t on) {
  State& all = state();
  const int to = all.memory.owner(target), from = all.memory.owner(source);
  if (!is_direction_right(kind, to >= 0, from >= 0) || !is_whole(target, bytes) ||
      !is_whole(source, bytes)) {
    complain(fmt::format("a copy of {} bytes from {} to {}: wrong direction or beyond the end",
                         bytes, all.memory.describe(source), all.memory.describe(target)));
    return result(cudaErrorInvalidValue);
  }
  submit(*resolve(on), fmt::format("a copy of {} bytes", bytes), [=, stream = resolve(on)] {
    std::vector<int> devices;
    if (to >= 0) devices.push_back(to);
    if (from >= 0 && from != to) devices.push_back(from);
    if (!is_whole(target, bytes) || !is_whole(source, bytes)) {
      fail(cudaErrorIllegalAddress, fmt::format("a copy of {} bytes: its memory is freed", bytes));
      return;
    }
    const Memory::Access open{state().memory, devices};
    pass_time(bytes);
    const As turn{stream->actor};
    if (bytes > 0) std::memcpy(target, source, bytes);  // of none, both may be null
  });
  return cudaSuccess;
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard guard{lock()};
  *count = state().options.devices;
  return *count == 0 ? result(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const std::lock_guard guard{lock()};
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const std::lock_guard guard{lock()};
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  *properties = {};
  fmt::format_to_n(properties->name, sizeof(properties->name) - 1, "emulated device {}", device);
  properties->major = state().options.capability / 10;
  properties->minor = state().options.capability % 10;
  properties->totalGlobalMem = state().options.memory;
  properties->multiProcessorCount = 1;
  properties->pciBusID = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device) {
  const std::lock_guard guard{lock()};
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  if (what == cudaDevAttrComputeCapabilityMajor)
    *value = state().options.capability / 10;
  else if (what == cudaDevAttrComputeCapabilityMinor)
    *value = state().options.capability % 10;
  else
    return result(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const std::lock_guard guard{lock()};
  if (!is_device(device)) return result(cudaErrorInvalidDevice);
  const auto end = fmt::format_to_n(text, length - 1, "0000:{:02x}:00.0", device).out;
  *end = 0;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const std::lock_guard guard{lock()};
  if (!is_device(device) || !is_device(peer)) return result(cudaErrorInvalidDevice);
  *can = state().options.peers && device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const std::lock_guard guard{lock()};
  if (!is_device(peer) || peer == current_device()) return result(cudaErrorInvalidDevice);
  if (flags != 0) return result(cudaErrorInvalidValue);
  if (!state().options.peers) return result(cudaErrorPeerAccessUnsupported);
  if (!state().memory.enable_peer(current_device(), peer))
    return result(cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard guard{lock()};
  *total = state().memory.capacity();
  *free = *total - state().memory.used(current_device());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  const std::lock_guard guard{lock()};
  if (state().failure != cudaSuccess) return result(state().failure);
  if (const cudaError_t error = refuse_while_capturing(nullptr, "cudaMalloc")) return error;
  *address = bytes == 0 ? nullptr : state().memory.allocate(current_device(), bytes);
  return bytes > 0 && *address == nullptr ? result(cudaErrorMemoryAllocation) : cudaSuccess;
}

// As on a real device, freeing waits for all work.
cudaError_t cudaFree(void* address) {
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t error = refuse_while_capturing(nullptr, "cudaFree")) return error;
  // It waits for the device whose memory that is, whichever is chosen.
  const int chosen = current_device(), owner = state().memory.owner(address);
  set_current_device(owner >= 0 ? owner : chosen);
  const cudaError_t before = cudaDeviceSynchronize();
  set_current_device(chosen);
  const std::lock_guard guard{lock()};
  if (!state().memory.free(address)) {
    complain("cudaFree of " + state().memory.describe(address) + ", not its begin or twice");
    return result(cudaErrorInvalidValue);
  }
  return result(before);
}

cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  const std::lock_guard guard{lock()};
  *address = ::operator new(bytes);
  state().host_allocations.insert(*address);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
  const std::lock_guard guard{lock()};
  if (address == nullptr) return cudaSuccess;
  if (state().host_allocations.erase(address) == 0) return result(cudaErrorInvalidValue);
  ::operator delete(address);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  return enqueue_copy(target, source, bytes, kind, stream);
}

cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = refuse_while_capturing(nullptr, "cudaMemcpy")) return error;
  if (const cudaError_t error = cudaMemcpyAsync(target, source, bytes, kind, nullptr)) return error;
  return synchronize(*resolve(nullptr), "cudaMemcpy");
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  if (state().memory.owner(target) != target_device ||
      state().memory.owner(source) != source_device) {
    complain("cudaMemcpyPeerAsync: memory of other devices than it says");
    return result(cudaErrorInvalidValue);
  }
  return enqueue_copy(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard guard{lock()};
  const int device = state().memory.owner(address);
  if (device < 0 || !is_whole(address, bytes)) {
    complain(fmt::format("a fill of {} bytes of {}", bytes, state().memory.describe(address)));
    return result(cudaErrorInvalidValue);
  }
  submit(*resolve(stream), "a fill", [=, on = resolve(stream)] {
    const Memory::Access open{state().memory, {&device, 1}};
    const As turn{on->actor};
    if (bytes > 0) std::memset(address, value, bytes);
  });
  return cudaSuccess;
}

}  // extern "C"
