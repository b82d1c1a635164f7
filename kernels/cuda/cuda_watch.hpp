// How long the host waits for GPUs. It asks instead of waiting: a collective whose partner is lost
// never ends, but its communicator learns of it.
#pragma once

#include <chrono>

#include "kernels/cuda/cuda_communicators.hpp"
#include "kernels/cuda/cuda_events.hpp"

namespace rehearse {

class CudaWatch {
 public:
  /// All outlive it.
  CudaWatch(const Program& program, const CudaOptions& options, const CudaEvents& events,
            const CudaCommunicators& communicators);

  void restart();
  void see_progress() { waited_ = {}; }
  /// One turn of waiting; false when patience is at an end. Throws DeviceError when somebody is
  /// lost, NCCL has failed, or the run is to stop.
  bool is_patient();
  /// One turn of waiting for an op; throws DeviceError when neither it nor any other has ended for
  /// too long.
  void wait_for(OpId id);

 private:
  using Clock = std::chrono::steady_clock;

  const Program& program_;
  const CudaOptions& options_;
  const CudaEvents& events_;
  const CudaCommunicators& communicators_;
  Clock::time_point asked_ = Clock::now();
  Clock::duration waited_{};
  std::size_t turns_ = 0, ended_ = 0;
};

}  // namespace rehearse
