// Capture, launch, and the wait for the end.
#include "kernels/cuda/cuda_graph.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

void CudaGraph::capture(CudaStreams& streams, CudaEvents& events,
                        const std::function<void()>& start) {
  const std::span<CudaStream> all = streams.of_program();
  const int device = std::ranges::min_element(all, {}, &CudaStream::device)->device;
  stream_.device = device;
  stream_.handle = make_stream(device);
  end_ = make_event(device, false);
  // Made beforehand, like all else: nothing may be, while the graph is.
  events.begin_capture();
  stream_.joint = make_event(device, false);
  for (CudaStream& each : all)
    if (each.joint == nullptr) each.joint = make_event(each.device, false);
  cudaGraph_t graph = nullptr;
  CUDA_TRY(cudaSetDevice(device));
  CUDA_TRY(cudaStreamBeginCapture(stream_.handle.get(), cudaStreamCaptureModeThreadLocal));
  try {
    for (CudaStream& each : all) order(stream_, each);
    start();
    for (CudaStream& each : all) order(each, stream_);
  } catch (...) {
    cudaStreamEndCapture(stream_.handle.get(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  events.end_capture();
  CUDA_TRY(cudaStreamEndCapture(stream_.handle.get(), &graph));
  cudaGraphExec_t run = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&run, graph, 0);
  cudaGraphDestroy(graph);
  CUDA_TRY(made);
  run_.reset(run);
}

void CudaGraph::launch() {
  CUDA_TRY(cudaSetDevice(stream_.device));
  CUDA_TRY(cudaGraphLaunch(run_.get(), stream_.handle.get()));
  CUDA_TRY(cudaEventRecord(end_.get(), stream_.handle.get()));
}

// Events inside of a graph keep their times of the run before until they are met again: only the
// one behind it tells that it has ended.
bool CudaGraph::is_over() const {
  const cudaError_t state = cudaEventQuery(end_.get());
  if (state != cudaSuccess && state != cudaErrorNotReady)
    throw DeviceError(fmt::format("the step's graph: {}", cudaGetErrorString(state)));
  return state == cudaSuccess;
}

}  // namespace rehearse
