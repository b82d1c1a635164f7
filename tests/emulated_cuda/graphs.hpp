// Graphs of the emulated CUDA runtime: what is put on a stream while one is made becomes a node,
// what a stream would wait for becomes an edge. A graph runs in any order that its edges allow,
// drawn from the seed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulated_cuda/state.hpp"

namespace emulated_cuda {

struct GraphNode {
  int device = 0;
  const CUstream_st* stream = nullptr;  // that it was put on: in whose name it runs
  std::string what;
  std::function<void()> run;
  std::function<bool()> is_ready;
  std::vector<std::size_t> after;
};

/// From cudaStreamBeginCapture to cudaStreamEndCapture.
struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode{};
  std::thread::id thread = std::this_thread::get_id();
  std::vector<CUstream_st*> streams;
  std::vector<GraphNode> nodes;
  bool is_broken = false, is_over = false;
};

/// Puts a node behind what is on the stream.
void add_node(CUstream_st& stream, std::string what, std::function<void()> run,
              std::function<bool()> is_ready);
cudaError_t record_edge(CUevent_st& event, CUstream_st& stream);
cudaError_t wait_for_edge(CUstream_st& stream, const CUevent_st& event);

/// The graph can no longer be made; the error of the call that broke it.
cudaError_t break_capture(Capture& capture, cudaError_t error, const std::string& why);
/// Calls that wait for a stream that is captured, or (none: any call) that CUDA forbids to a thread
/// that makes a graph.
cudaError_t refuse_while_capturing(const CUstream_st* stream, const char* call);
/// Calls that ask an event which is only an edge.
cudaError_t refuse_edge(const CUevent_st& event, const char* call);
void leave_capture(CUstream_st& stream);

/// While a node runs or is asked whether it may: which run of its graph, from 1 on. Else 0.
std::uint64_t graph_run_number();

}  // namespace emulated_cuda
