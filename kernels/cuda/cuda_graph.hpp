// A whole step as one CUDA graph: what the ops put on their streams is recorded once, and started
// by one call for every step after that. The first run is a plain one, which makes communicators,
// scratch memory and peer access: none of that is allowed while a graph is made.
//
//   graph's stream  ─●────────────────●─▶      fork: every stream of the program waits for the
//                     ╲   the         ╱        graph's own; join: it waits for them all
//   streams            ●─[op]─[op]──●          edges are events, as without a graph
#pragma once

#include <functional>

#include "kernels/cuda/cuda_events.hpp"

namespace rehearse {

class CudaGraph {
 public:
  bool is_made() const { return run_ != nullptr; }
  /// Records what `start` puts on the program's streams.
  void capture(CudaStreams& streams, CudaEvents& events, const std::function<void()>& start);
  void launch();
  bool is_over() const;

 private:
  CudaStream stream_;  // where it begins and ends
  GraphRunHandle run_;
  EventHandle end_;
};

}  // namespace rehearse
