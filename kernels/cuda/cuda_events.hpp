// An event before and one behind each op on its stream: streams wait for them, and they tell when
// ops began and ended, by the clock of their device.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "kernels/cuda/cuda_streams.hpp"
#include "sim/program/timeline.hpp"

namespace rehearse {

class CudaEvents {
 public:
  CudaEvents(const Program& program, CudaStreams& streams);

  /// Each device's clock begins when all of its memory is in place.
  void start_clocks();
  /// When the first did, by this process's steady clock.
  std::chrono::nanoseconds clocks_began() const { return clocks_began_; }
  void record_begin(OpId id, const CudaStream& stream);
  void record_end(OpId id, const CudaStream& stream);
  /// What comes later on the stream waits for the op's end.
  void make_wait(const CudaStream& stream, OpId id) const;
  /// Between them, ops are recorded into a graph.
  void begin_capture();
  void end_capture() { edges_.clear(); }

  bool is_over(OpId id) const;  // so is an op of another process
  std::size_t count_over() const;
  Time end_of(OpId id) const { return since_origin(id, moments_[index(id)].end); }
  /// By op; never() where it has no part here.
  LargeVector<Timeline::Span> spans() const;

 private:
  struct Moments {
    EventHandle begin, end;
  };
  Time since_origin(OpId id, const EventHandle& event) const;

  const Program& program_;
  CudaStreams& streams_;
  std::vector<Moments> moments_;        // by op
  std::map<int, EventHandle> origins_;  // by device: when its clock begins
  std::chrono::nanoseconds clocks_began_{};
  std::vector<EventHandle> edges_;  // by op, while a graph is made: its end
};

}  // namespace rehearse
