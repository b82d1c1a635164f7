// Streams are made when a run is made ready, but for those of arrivals, which the first run makes.
#include "kernels/cuda/cuda_streams.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/math/cuda_try.hpp"

namespace rehearse {

std::byte* CudaScratch::take(int device, std::size_t needed, CudaRecords* records) {
  constexpr std::size_t alignment = 256;
  needed = (needed + alignment - 1) / alignment * alignment;
  asked += needed;
  if (bytes - used < needed || bytes < asked) grow(device, std::max(2 * bytes, asked), records);
  used += needed;
  return block.get() + used - needed;
}

void CudaScratch::grow(int device, std::size_t size, CudaRecords* records) {
  const CudaRecords::Of nobody{records, no_op};  // clearing it is not the op's work
  if (block != nullptr) outgrown.push_back(std::move(block));
  block = make_block(device, size);
  bytes = size;
  used = 0;
}

void record(EventHandle& event, const CudaStream& stream, bool with_time, bool in_graph) {
  if (event == nullptr) event = make_event(stream.device, with_time);
  CUDA_TRY(cudaSetDevice(stream.device));
  // In a graph, an event with a time is a node of its own: only so does it tell one.
  CUDA_TRY(cudaEventRecordWithFlags(
      event.get(), stream.handle.get(),
      with_time && in_graph ? cudaEventRecordExternal : cudaEventRecordDefault));
}

void order(CudaStream& first, const CudaStream& second) {
  // An event may be recorded again at once: who waits for it waits for what it was when asked.
  record(first.joint, first, false);
  CUDA_TRY(cudaStreamWaitEvent(second.handle.get(), first.joint.get(), 0));
}

CudaStreams::CudaStreams(const Program& program, const CudaMemory& memory, const CudaRanges& ranges,
                         CudaRecords* records)
    : program_{program},
      memory_{memory},
      records_{records},
      table_{program},
      streams_(table_.size()) {
  const auto make = [&](CudaStream& stream, Rank rank) {
    stream.device = memory.device_of(rank);
    stream.handle = make_stream(stream.device);
  };
  for (const Program::Op& op : program.ops()) {
    for (const Rank rank : ranks_of(program, op)) {
      CudaStream& stream = at(rank, op.stream);
      if (stream.handle != nullptr || !memory.is_here(rank)) continue;
      make(stream, rank);
      ranges.name(stream.handle.get(), rank, op.stream);
    }
    if (op.kind != WorkKind::transfer || memory.is_here(op.rank)) continue;
    const Rank target = program[program.transfer(op).connection].target;
    if (memory.is_here(target) && !receiving_.contains(target)) make(receiving_[target], target);
  }
}

CudaStream* CudaStreams::of(const Program::Op& op) {
  const std::vector<CudaStream*> all = all_of(op);
  return all.empty() ? nullptr : all.front();
}

std::vector<CudaStream*> CudaStreams::all_of(const Program::Op& op) {
  std::vector<CudaStream*> all;
  for (const Rank rank : ranks_of(program_, op))
    if (memory_.is_here(rank)) all.push_back(&at(rank, op.stream));
  if (!all.empty() || op.kind != WorkKind::transfer) return all;
  const auto receiving = receiving_.find(program_[program_.transfer(op).connection].target);
  if (receiving != receiving_.end()) all.push_back(&receiving->second);
  return all;
}

CudaStream& CudaStreams::arrival(const CudaStream& source, int device, std::size_t staging_bytes) {
  CudaStream& stream = arrivals_[{&source, device}];
  if (stream.handle == nullptr) {
    stream.device = device;
    stream.handle = make_stream(device);
  }
  if (stream.scratch.bytes < staging_bytes) stream.scratch.grow(device, staging_bytes, records_);
  return stream;
}

}  // namespace rehearse
