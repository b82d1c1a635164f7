// Steps on the GPUs of this process: linked into rehearse-cuda with CUDA itself, and into a program
// of the tests with emulated GPUs.
#include "tools/cuda_backend.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "kernels/cuda_executor.hpp"
#include "sim/assert.hpp"
#include "tools/cuda_places.hpp"
#include "tools/host_training.hpp"

namespace rehearse {

namespace {

// Ranks beyond the devices share them.
std::vector<int> device_of_ranks(std::size_t ranks) {
  const auto devices = static_cast<std::size_t>(device_count());
  std::vector<int> device_of;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    device_of.push_back(static_cast<int>(rank % devices));
  return device_of;
}

// NCCL reads them when the first communicator is made.
void choose(const CudaChoice& choice) {
  if (!choice.algorithm.empty()) setenv("NCCL_ALGO", choice.algorithm.c_str(), 1);
  if (!choice.protocol.empty()) setenv("NCCL_PROTO", choice.protocol.c_str(), 1);
}

HostSteps run_steps_on_gpus(const HostStep& step, const LoadedScenario& loaded,
                            const HostRanks& ranks, const HostStepOptions& options,
                            const CudaChoice& choice) {
  ASSERT(step.bound.has_value());
  choose(choice);
  const CudaMemory memory{step.program, device_of_ranks(loaded.topology.rank_count()),
                          places_of(*step.bound)};
  StagedCudaMemory staged{memory};
  const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
  HostTraining training{*step.bound, loaded.workload,        step.numbers, ranks,
                        at,          [&] { staged.store(); }};
  CudaExecutor executor{memory, {.stop = stop_within_step(options)}};
  return run_steps(step, ranks, options, executor, &training);
}

std::string describe_gpus(std::size_t ranks) {
  const int devices = device_count();
  return fmt::format("{} ranks on {} GPU{}", ranks, devices, devices == 1 ? "" : "s");
}

}  // namespace

const CudaBackend* cuda_backend() {
  static constexpr CudaBackend backend{run_steps_on_gpus, describe_gpus, calibrate_on_gpus};
  return &backend;
}

}  // namespace rehearse
