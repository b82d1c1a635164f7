// Steps on the GPUs of this process: linked into rehearse-cuda with CUDA itself, and into a program
// of the tests with emulated GPUs.
#include "tools/cuda_backend.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>

#include "kernels/cuda_executor.hpp"
#include "sim/assert.hpp"
#include "tools/cuda_places.hpp"

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
void choose(const CudaRunOptions& options) {
  if (!options.algorithm.empty()) setenv("NCCL_ALGO", options.algorithm.c_str(), 1);
  if (!options.protocol.empty()) setenv("NCCL_PROTO", options.protocol.c_str(), 1);
}

HostSteps run_steps_on_gpus(const HostStep& step, const LoadedScenario& loaded,
                            const CudaRunOptions& options) {
  ASSERT(step.bound.has_value());
  choose(options);
  const BoundStep& bound = *step.bound;
  const Program& program = step.program;
  const CudaMemory memory{program, device_of_ranks(loaded.topology.rank_count()), places_of(bound)};
  StagedCudaMemory staged{memory};
  const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
  const TrainingNumbers numbers;
  fill_parameters(bound, numbers, at);
  staged.store();
  CudaExecutor executor{memory};
  HostSteps done;
  std::vector<Time> times;
  for (std::size_t i = 0; i <= options.steps; ++i) {
    fill_batch(bound, loaded.workload, numbers, i * bound.steps, at);
    staged.store();
    Timeline timeline = executor.run(program);
    if (i == 0) continue;  // loads the kernels, makes the communicators
    const std::vector<double> losses = read_losses(bound, at);
    staged.store();
    done.losses.push_back(std::accumulate(losses.begin(), losses.end(), 0.0) /
                          static_cast<double>(bound.steps));
    times.push_back(timeline.makespan);
    done.timelines.push_back(std::move(timeline));
  }
  done.median = median_of(times);
  done.spread = spread_of(times);
  return done;
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
