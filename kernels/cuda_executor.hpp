// Runs a Program on GPUs: streams of ranks are CUDA streams, edges are events, transfers are peer
// copies and sums (NCCL's sends between nodes), collectives are NCCL's own, computes are kernels.
//
//   rank 0 comm  ──[copy]──●──────────▶     ● event
//                           ╲ wait          everything is put on its stream in program order; the
//   rank 1 comm  ────────────●─[sum]──▶     devices keep the order, the host only waits for the end
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda_memory.hpp"
#include "sim/executor.hpp"

namespace rehearse {

class CudaRun;

struct CudaOptions {
  /// By rank; transfers between different nodes go through NCCL. Empty: all on one.
  std::vector<int> node_of;
  /// No op ends for so long: the run is given up.
  std::chrono::milliseconds patience{60000};
  /// Asked while it waits: true gives the run up.
  std::function<bool()> stop;
};

class CudaExecutor final : public Executor {
 public:
  /// The memory is that of the programs it will run, and outlives it.
  explicit CudaExecutor(const CudaMemory& memory, CudaOptions options = {});
  ~CudaExecutor() override;

  /// Every op, in real time; each device's clock begins when its first work may. Throws DeviceError
  /// when a device or NCCL fails, or nothing ends for too long; nothing is left behind then.
  /// Streams, communicators and scratch memory stay for the next run of the same program, which
  /// must be where it was.
  Timeline run(const Program& program) override;

 private:
  const CudaMemory& memory_;
  CudaOptions options_;
  const Program* program_ = nullptr;
  std::unique_ptr<CudaRun> run_;  // of program_
};

}  // namespace rehearse
