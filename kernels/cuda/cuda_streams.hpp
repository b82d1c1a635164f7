// The CUDA streams of a run, each with the memory that work on it needs: those of the program, and
// beside them one where a device takes in what arrives from another.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_memory.hpp"
#include "kernels/cuda/cuda_ranges.hpp"
#include "kernels/cuda/cuda_records.hpp"
#include "sim/program/stream_table.hpp"

namespace rehearse {

/// One block for a stream, used again by each of its calls, which run one after another. What it
/// outgrew stays: work under way may use it. The same calls again find all that they need: a graph
/// is made of the second run, and cannot allocate.
struct CudaScratch {
  /// More of it for this call.
  std::byte* take(int device, std::size_t needed, CudaRecords* records);
  void grow(int device, std::size_t size, CudaRecords* records);

  DeviceBlock block;
  std::size_t bytes = 0, used = 0;
  std::size_t asked = 0;  // by this call, of blocks that it outgrew, too
  std::vector<DeviceBlock> outgrown;
};

struct CudaStream {
  int device = 0;
  StreamHandle handle;
  EventHandle joint;  // of order(), with this one first
  CudaScratch scratch;
};

void record(EventHandle& event, const CudaStream& stream, bool with_time, bool in_graph = false);
/// What comes later on `second` waits for all that is on `first` now.
void order(CudaStream& first, const CudaStream& second);

class CudaStreams {
 public:
  /// Streams of ranks that are here. `records` may be null.
  CudaStreams(const Program& program, const CudaMemory& memory, const CudaRanges& ranges,
              CudaRecords* records);

  const StreamTable& table() const { return table_; }
  CudaStream& at(Rank rank, Stream stream) { return streams_[table_.number(rank, stream)]; }
  std::span<CudaStream> of_program() { return streams_; }
  /// Where this process's part of an op is (its first); null: it has none.
  CudaStream* of(const Program::Op& op);
  /// Where all of its parts here are.
  std::vector<CudaStream*> all_of(const Program::Op& op);
  /// On the target's device, for what is done there to what arrives from one stream; its scratch
  /// has `staging_bytes`.
  CudaStream& arrival(const CudaStream& source, int device, std::size_t staging_bytes);
  std::byte* take_scratch(CudaStream& stream, std::size_t bytes) {
    return stream.scratch.take(stream.device, bytes, records_);
  }

 private:
  const Program& program_;
  const CudaMemory& memory_;
  CudaRecords* records_;
  StreamTable table_;
  std::vector<CudaStream> streams_;       // by number; without a handle where the rank is elsewhere
  std::map<Rank, CudaStream> receiving_;  // from other processes
  std::map<std::pair<const CudaStream*, int>, CudaStream> arrivals_;
};

}  // namespace rehearse
