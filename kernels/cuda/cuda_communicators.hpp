// NCCL's communicators, one for each group of ranks.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_executor.hpp"

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

}  // namespace rehearse
