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
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_memory.hpp"
#include "sim/engine/executor.hpp"

namespace rehearse {

/// Where ranks are in several processes, each with GPUs of its own. All of them run the same
/// program.
struct CudaProcesses {
  std::size_t self = 0;
  std::vector<std::size_t> process_of;  // by rank
  /// Every process's text, by process; waits for all of them.
  std::function<std::vector<std::string>(const std::string& mine)> gather;
  /// Called again and again while a run waits: throws when a process is lost.
  std::function<void()> look;
  Time clock_ahead;  // this process's clock minus the first one's

  std::size_t of(Rank rank) const { return process_of[index(rank)]; }
};

struct CudaOptions {
  /// By rank; transfers between different nodes go through NCCL. Empty: all on one.
  std::vector<int> node_of;
  /// None: all ranks are here.
  std::optional<CudaProcesses> processes;
  /// No op ends for so long: the run is given up.
  std::chrono::milliseconds patience{60000};
  /// Asked while it waits: true gives the run up.
  std::function<bool()> stop;
  /// From the second run of a program on, the whole of it is one CUDA graph. Not with queues.
  bool graph = false;
  /// CUPTI's library: its records tell the times. Empty: events do. Not with a graph.
  std::string cupti = {};
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
  class Run;
  Timeline run_here(const Program& program);

  const CudaMemory& memory_;
  CudaOptions options_;
  const Program* program_ = nullptr;
  std::unique_ptr<Run> run_;  // of program_
};

}  // namespace rehearse
