// A whole step as one CUDA graph: what the ops put on their streams is recorded once, and started
// by one call for every step after that. The first run is a plain one, which makes communicators,
// scratch memory and peer access: none of that is allowed while a graph is made.
//
//   graph's stream  ─●────────────────●─▶      fork: every stream of the program waits for the
//                     ╲   lanes, with ╱        graph's own; join: it waits for them all
//   streams            ●─[op]─[op]──●          edges are events, as without a graph
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda/cuda_run.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

void CudaRun::capture_graph() {
  ASSERT(!program_.has_queues());
  const int device = origins_.begin()->first;
  graph_lane_ = {device, make_stream(device)};
  graph_end_ = make_event(device, false);
  // Made beforehand, like all else: nothing may be, while the graph is.
  edges_.resize(program_.size());
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const Rank first = ranks_of(program_, program_.ops()[i]).front();
    edges_[i] = make_event(memory_.device_of(first), false);
  }
  joints_[&graph_lane_] = make_event(device, false);
  for (Lane& lane : lanes_)
    if (joints_[&lane] == nullptr) joints_[&lane] = make_event(lane.device, false);
  cudaGraph_t graph = nullptr;
  CUDA_TRY(cudaSetDevice(device));
  CUDA_TRY(cudaStreamBeginCapture(graph_lane_.stream.get(), cudaStreamCaptureModeThreadLocal));
  is_capturing_ = true;
  try {
    for (Lane& lane : lanes_) order(graph_lane_, lane);
    for (std::size_t i = 0; i < program_.size(); ++i) start_op(static_cast<OpId>(i));
    for (Lane& lane : lanes_) order(lane, graph_lane_);
  } catch (...) {
    is_capturing_ = false;
    cudaStreamEndCapture(graph_lane_.stream.get(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  is_capturing_ = false;
  edges_.clear();
  CUDA_TRY(cudaStreamEndCapture(graph_lane_.stream.get(), &graph));
  cudaGraphExec_t run = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&run, graph, 0);
  cudaGraphDestroy(graph);
  CUDA_TRY(made);
  graph_run_.reset(run);
}

void CudaRun::launch_graph() {
  if (graph_run_ == nullptr) capture_graph();
  CUDA_TRY(cudaSetDevice(graph_lane_.device));
  CUDA_TRY(cudaGraphLaunch(graph_run_.get(), graph_lane_.stream.get()));
  CUDA_TRY(cudaEventRecord(graph_end_.get(), graph_lane_.stream.get()));
}

// Events inside of a graph keep their times of the run before until they are met again: only the
// one behind it tells that it has ended.
void CudaRun::finish_graph() {
  for (;;) {
    const cudaError_t state = cudaEventQuery(graph_end_.get());
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady)
      throw DeviceError(fmt::format("the step's graph: {}", cudaGetErrorString(state)));
    if (!is_patient())
      throw DeviceError(
          fmt::format("the step's graph has not ended for {} ms", options_.patience.count()));
  }
}

}  // namespace rehearse
