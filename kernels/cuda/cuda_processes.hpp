// Several processes that run one Program: each goes through all of it and does its own part.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/cuda/cuda_streams.hpp"

namespace rehearse {

/// Of each op, the parts in this process that come before it, by edges and streams of whatever
/// process. Nothing else touches the memory here, and what must come from elsewhere comes as data.
/// Everybody issues in program order and waits for what is before it in that order only: nothing
/// can wait in a circle.
class CudaPredecessors {
 public:
  /// Throws InputError where the program has queues.
  CudaPredecessors(const Program& program, CudaStreams& streams);

  /// For which ops the stream must wait before its part of an op, but for those for which it waits
  /// already.
  std::vector<OpId> missing(OpId id, const CudaStream& stream);
  void restart() { waited_.assign(waited_.size(), nobody); }

 private:
  static constexpr std::int32_t nobody = -1;
  std::map<const CudaStream*, std::size_t> numbers_;  // of the streams here
  std::vector<std::int32_t> before_;                  // by op and stream: the last before the op
  std::vector<std::int32_t> waited_;                  // by stream and stream: the last waited for
};

/// Fills in what other processes know; never() is what this one does not. An op begins where its
/// stream is, and ends when it has ended everywhere. The clocks of this process began at
/// `clocks_began`.
void share_spans(const Program& program, const CudaProcesses& processes,
                 std::chrono::nanoseconds clocks_began, LargeVector<Timeline::Span>& spans);

}  // namespace rehearse
