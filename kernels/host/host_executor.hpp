// Runs a Program for real on this machine's processors: ranks are threads, their buffers are
// memory, transfers are copies and sums, computes run their kernels, and the Timeline is wall time.
#pragma once

#include <functional>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "sim/engine/executor.hpp"
#include "sim/program/collective_part.hpp"

namespace rehearse {

/// What a compute op does.
enum class HostCompute : std::uint8_t {
  calls,  // its kernels; an op without any takes no time
  paced,  // it waits for its modelled time, and computes nothing
};

struct HostOptions {
  HostCompute compute = HostCompute::calls;
  std::vector<Time> pace;      // paced: by OpId, how long computes wait
  bool pin = true;             // ranks to processors, when there is one for each
  std::size_t processors = 0;  // more ranks than these take turns on them; 0: all that are here
  std::vector<CollectivePart> parts;  // of collectives that MPI runs: with processes only
  std::function<bool()> stop;         // asked now and then: true ends the run with a DeviceError
};

class HostExecutor final : public Executor {
 public:
  /// The memory is that of the programs it will run, and outlives it.
  explicit HostExecutor(HostMemory& memory, HostOptions options = {})
      : memory_{memory}, options_{std::move(options)} {}

  /// Every op, in real time: time zero is when all workers are there and begin. Collectives must be
  /// expanded. Throws CheckFailed when the program cannot finish, and what a kernel throws.
  Timeline run(const Program& program) override;

 private:
  HostMemory& memory_;
  HostOptions options_;
};

/// How long each compute of the program would take alone on the topology's devices, by OpId.
std::vector<Time> modelled_pace(const Program& program, const Topology& topology,
                                const CostModel& cost);

}  // namespace rehearse
