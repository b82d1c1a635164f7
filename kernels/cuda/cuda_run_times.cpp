// When ops began and ended: by the events around them, or by CUPTI's records of what they started.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/cuda/cuda_run.hpp"
#include "kernels/math/cuda_try.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

Time CudaRun::since_origin(OpId id, const EventHandle& event) {
  const int device = lane_here(program_[id])->device;
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, origins_.at(device).get(), event.get()));
  return Time::round(Seconds{static_cast<double>(milliseconds) * 1e-3});
}

Timeline CudaRun::timeline() {
  if (records_ != nullptr) return recorded_timeline();
  Timeline result;
  result.spans.resize(program_.size());
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    if (lane_here(program_[id]) == nullptr) {
      result.spans[i] = {Time::never(), Time{}, no_op};
      continue;
    }
    result.spans[i].begin = since_origin(id, moments_[i].begin);
    result.spans[i].end = std::max(since_origin(id, moments_[i].end), result.spans[i].begin);
  }
  keep_served_order(result);
  for (std::size_t i = 0; i < program_.size(); ++i)
    result.makespan = std::max(result.makespan, result.spans[i].end);
  result.events = program_.size();
  if (options_.processes) share_timeline(result);
  return result;
}

// Of an op that started nothing there is no record: it is over when all before it is.
Timeline CudaRun::recorded_timeline() {
  const std::map<OpId, CudaRecords::Span> records = records_->take();
  if (records.empty()) throw DeviceError("CUPTI has told of no kernel and no copy");
  const auto since_begin = [&](std::uint64_t time) {
    return Time::picoseconds(1000 *
                             static_cast<std::int64_t>(time - std::min(time, records_begin_)));
  };
  Timeline result;
  result.spans.resize(program_.size());
  std::vector<Time> stream_end(streams_.size());
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program_[id];
    Timeline::Span& span = result.spans[i];
    if (const auto at = records.find(id); at != records.end()) {
      span.begin = since_begin(at->second.begin);
      span.end = since_begin(at->second.end);
    } else {
      for (const OpId input : program_.after(id))
        span.begin = std::max(span.begin, result.spans[index(input)].end);
      for (const Rank rank : ranks_of(program_, op))
        span.begin = std::max(span.begin, stream_end[streams_.number(rank, op.stream)]);
      span.end = span.begin;
    }
    for (const Rank rank : ranks_of(program_, op)) {
      Time& last = stream_end[streams_.number(rank, op.stream)];
      last = std::max(last, span.end);
    }
  }
  keep_served_order(result);
  for (const Timeline::Span& span : result.spans)
    result.makespan = std::max(result.makespan, span.end);
  result.events = program_.size();
  return result;
}

}  // namespace rehearse
