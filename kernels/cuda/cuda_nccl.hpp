// NCCL: a communicator for each group of ranks, and collectives as NCCL's own, in place where the
// Program's are.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/cuda/cuda_streams.hpp"

namespace rehearse {

class CudaCommunicators {
 public:
  /// With processes, those that the program needs are made now; else each when it is first asked
  /// for.
  CudaCommunicators(const Program& program, const CudaMemory& memory,
                    const std::optional<CudaProcesses>& processes);

  /// By place in the group; null for a rank that is elsewhere.
  std::span<const CommunicatorHandle> of(const std::vector<Rank>& group);
  /// Throws DeviceError when one of them has failed.
  void check() const;

 private:
  void join(const std::vector<std::vector<Rank>>& groups, const CudaProcesses& processes);

  const CudaMemory& memory_;
  const bool may_make_;  // one process alone
  std::map<std::vector<Rank>, std::vector<CommunicatorHandle>> communicators_;
};

/// This process's part of a collective, on the op's streams.
void start_collective(const Program& program, const Program::Op& op, const CudaMemory& memory,
                      CudaStreams& streams, CudaCommunicators& communicators);

}  // namespace rehearse
