// Transfers: copies on the source's stream; sums on the target's device, which reads the source
// over the link once. Between nodes and between processes NCCL carries the bytes.
//
//   source's stream  ──●───────────────────●──▶   ● it goes on when the sum is made
//                       ╲                 ╱
//   arrival          ────●──[sum += x]───●────▶   a stream of the target's device
//
//   process 0, rank 0  ──[ncclSend]──▶              it goes on when the bytes have left
//                              ╲
//   process 1          ─────────●[ncclRecv]─[sum]──●   a stream of rank 1 beside the program's
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_nccl.hpp"
#include "kernels/cuda/cuda_streams.hpp"

namespace rehearse {

class CudaTransfers {
 public:
  /// All outlive it. Nodes by rank; empty: one.
  CudaTransfers(const Program& program, const CudaMemory& memory, const std::vector<int>& node_of,
                CudaStreams& streams, CudaCommunicators& communicators);

  /// This process's part of it, from the op's stream here.
  void start(const Transfer& work, CudaStream& stream);

 private:
  /// A slice of a rank on its device.
  struct Place {
    Rank rank{};
    int device = 0, node = 0;
    std::span<std::byte> bytes;
  };
  Place place(Rank rank, const Slice& slice) const;
  void start_half(const Transfer& work, const Connection& way, CudaStream& stream);
  void deliver(CudaStream& stream, const Place& source, const Place& target, const Transfer& work);
  void reduce_by_switch(CudaStream& stream, const Transfer& work, const Connection& way);
  /// The source's bytes, as they are or as a copy, where `arrival` can read them.
  std::span<std::byte> bring(CudaStream& stream, const Place& source, const Place& target,
                             CudaStream& arrival);
  void send(const CudaStream& stream, const Place& source, const Place& target,
            const CudaStream& arrival);
  bool reaches(int device, int other);

  const Program& program_;
  const CudaMemory& memory_;
  const std::vector<int>& node_of_;
  CudaStreams& streams_;
  CudaCommunicators& communicators_;
  std::map<std::pair<int, int>, bool> reaches_;
};

}  // namespace rehearse
