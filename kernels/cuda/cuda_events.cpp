// Events with a time, but for those that only order the ops of a graph.
#include "kernels/cuda/cuda_events.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

CudaEvents::CudaEvents(const Program& program, CudaStreams& streams)
    : program_{program}, streams_{streams}, moments_(program.size()) {
  for (const Program::Op& op : program.ops())
    for (const CudaStream* stream : streams.all_of(op))
      if (EventHandle& origin = origins_[stream->device]; origin == nullptr)
        origin = make_event(stream->device, true);
}

void CudaEvents::start_clocks() {
  for (auto& [device, origin] : origins_) {
    CUDA_TRY(cudaSetDevice(device));
    CUDA_TRY(cudaDeviceSynchronize());
    CUDA_TRY(cudaEventRecord(origin.get(), nullptr));
  }
  // No stream waits for the default one, so that the host must.
  for (auto& [device, origin] : origins_) CUDA_TRY(cudaEventSynchronize(origin.get()));
  clocks_began_ = std::chrono::steady_clock::now().time_since_epoch();
}

void CudaEvents::record_begin(OpId id, const CudaStream& stream) {
  record(moments_[index(id)].begin, stream, true, !edges_.empty());
}

void CudaEvents::record_end(OpId id, const CudaStream& stream) {
  record(moments_[index(id)].end, stream, true, !edges_.empty());
  if (!edges_.empty()) record(edges_[index(id)], stream, false);
}

void CudaEvents::make_wait(const CudaStream& stream, OpId id) const {
  const EventHandle& end = edges_.empty() ? moments_[index(id)].end : edges_[index(id)];
  CUDA_TRY(cudaStreamWaitEvent(stream.handle.get(), end.get(), 0));
}

// Made beforehand: nothing may be, while the graph is.
void CudaEvents::begin_capture() {
  for (const Program::Op& op : program_.ops())
    edges_.push_back(make_event(streams_.of(op)->device, false));
}

bool CudaEvents::is_over(OpId id) const {
  const EventHandle& end = moments_[index(id)].end;
  if (end == nullptr) return true;
  const cudaError_t state = cudaEventQuery(end.get());
  if (state != cudaSuccess && state != cudaErrorNotReady)
    throw DeviceError(fmt::format("{}: {}", program_.describe(id), cudaGetErrorString(state)));
  return state == cudaSuccess;
}

std::size_t CudaEvents::count_over() const {
  return static_cast<std::size_t>(std::ranges::count_if(moments_, [](const Moments& each) {
    return each.end != nullptr && cudaEventQuery(each.end.get()) == cudaSuccess;
  }));
}

Time CudaEvents::since_origin(OpId id, const EventHandle& event) const {
  const int device = streams_.of(program_[id])->device;
  float milliseconds = 0;
  CUDA_TRY(cudaEventElapsedTime(&milliseconds, origins_.at(device).get(), event.get()));
  return Time::round(Seconds{static_cast<double>(milliseconds) * 1e-3});
}

LargeVector<Timeline::Span> CudaEvents::spans() const {
  LargeVector<Timeline::Span> spans;
  for (std::size_t i = 0; i < program_.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    if (streams_.of(program_[id]) == nullptr) {
      spans.push_back({Time::never(), Time{}, no_op});
      continue;
    }
    const Time begin = since_origin(id, moments_[i].begin);
    spans.push_back({begin, std::max(end_of(id), begin), no_op});
  }
  return spans;
}

}  // namespace rehearse
