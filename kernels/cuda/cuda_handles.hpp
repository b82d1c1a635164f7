// Streams, events, memory, communicators and cuBLAS handles that destroy themselves. CUDA's own
// headers are not needed to hold them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;
struct ncclComm;
struct cublasContext;

namespace rehearse {

struct DestroyStream {
  void operator()(CUstream_st* stream) const;
};
struct DestroyEvent {
  void operator()(CUevent_st* event) const;
};
struct DestroyGraphRun {
  void operator()(CUgraphExec_st* graph) const;
};
struct FreeDeviceMemory {
  void operator()(std::byte* memory) const;
};
struct DestroyBlas {
  void operator()(cublasContext* handle) const;
};
/// Ends what is still under way: a collective that waits for a lost rank would wait forever.
struct AbortCommunicator {
  void operator()(ncclComm* communicator) const;
};

using StreamHandle = std::unique_ptr<CUstream_st, DestroyStream>;
using EventHandle = std::unique_ptr<CUevent_st, DestroyEvent>;
using GraphRunHandle = std::unique_ptr<CUgraphExec_st, DestroyGraphRun>;
using DeviceBlock = std::unique_ptr<std::byte, FreeDeviceMemory>;
using BlasHandle = std::unique_ptr<cublasContext, DestroyBlas>;
using CommunicatorHandle = std::unique_ptr<ncclComm, AbortCommunicator>;

StreamHandle make_stream(int device);
EventHandle make_event(int device, bool with_time);
/// Filled with zeros; null for no bytes.
DeviceBlock make_block(int device, std::size_t bytes);
BlasHandle make_blas(int device);

/// "0000:17:00.0": where a device is in its machine.
std::string place_of_device(int device);
/// How many devices there are. Throws NothingToRunOn, with CUDA's reason, where there is none.
int device_count();

/// The name of CUPTI's library that belongs to this CUDA.
std::string cupti_library();

}  // namespace rehearse
