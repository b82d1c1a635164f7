// Steps on the GPUs of this process: linked into rehearse-cuda with CUDA itself, and into a program
// of the tests with emulated GPUs.
#include "tools/measure/cuda_backend.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "tools/measure/cuda_devices.hpp"
#include "tools/measure/cuda_places.hpp"
#include "tools/measure/host_training.hpp"

namespace rehearse {

namespace {

// Two processes on one GPU would wait for each other inside NCCL.
void refuse_shared_gpus(int device, const HostRanks& processes) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::vector<std::string> places =
      processes.gather(fmt::format("{} of {}", place_of_device(device), host));
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (places[i] == places[j])
        throw InputError(
            fmt::format("processes {} and {} would share GPU {}: start no more processes on a "
                        "machine than it has GPUs",
                        j, i, places[i]));
}

// One each; mpirun numbers the processes of a machine, which may show each of them one GPU only.
std::vector<int> device_of_process(std::size_t ranks, const HostRanks& processes) {
  if (processes.processes() < ranks)
    throw InputError(fmt::format("{} ranks need as many processes, and mpirun started {}", ranks,
                                 processes.processes()));
  const int device =
      static_cast<int>(processes.local_number() % static_cast<std::size_t>(device_count()));
  refuse_shared_gpus(device, processes);
  std::vector<int> device_of(ranks, CudaMemory::elsewhere);
  if (processes.number() < ranks) device_of[processes.number()] = device;
  return device_of;
}

}  // namespace

std::vector<int> device_of_ranks(std::size_t ranks, const HostRanks& processes) {
  if (processes.are_processes()) return device_of_process(ranks, processes);
  const auto devices = static_cast<std::size_t>(device_count());
  std::vector<int> device_of;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    device_of.push_back(static_cast<int>(rank % devices));
  return device_of;
}

void choose(const CudaChoice& choice) {
  if (!choice.algorithm.empty()) setenv("NCCL_ALGO", choice.algorithm.c_str(), 1);
  if (!choice.protocol.empty()) setenv("NCCL_PROTO", choice.protocol.c_str(), 1);
}

CudaOptions cuda_options(std::size_t ranks, const HostRanks& processes,
                         std::function<bool()> stop) {
  CudaOptions how{.stop = std::move(stop)};
  if (!processes.are_processes()) return how;
  processes.look_after_others(std::exchange(how.stop, {}));
  how.processes =
      CudaProcesses{.self = processes.number(),
                    .gather = [&](const std::string& mine) { return processes.gather(mine); },
                    .look = [&] { processes.look(); },
                    .clock_ahead = processes.clock_ahead()};
  for (std::size_t rank = 0; rank < ranks; ++rank) how.processes->process_of.push_back(rank);
  return how;
}

namespace {

HostSteps run_steps_on_gpus(const HostStep& step, const LoadedScenario& loaded,
                            const HostRanks& ranks, const HostStepOptions& options,
                            const CudaChoice& choice) {
  ASSERT(step.bound.has_value());
  choose(choice);
  const CudaMemory memory{step.program, device_of_ranks(loaded.topology.rank_count(), ranks),
                          places_of(*step.bound)};
  StagedCudaMemory staged{memory};
  const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
  HostTraining training{*step.bound, loaded.workload,        step.numbers, ranks,
                        at,          [&] { staged.store(); }};
  CudaOptions how = cuda_options(loaded.topology.rank_count(), ranks, stop_within_step(options));
  how.graph = choice.graph;
  if (choice.cupti) how.cupti = cupti_library();
  CudaExecutor executor{memory, how};
  return run_steps(step, ranks, options, executor, &training);
}

}  // namespace

std::string describe_gpus(std::size_t ranks, const HostRanks& processes) {
  if (processes.are_processes()) return fmt::format("{} ranks on a GPU and process each", ranks);
  const int devices = device_count();
  return fmt::format("{} ranks on {} GPU{}", ranks, devices, devices == 1 ? "" : "s");
}

const CudaBackend* cuda_backend() {
  static constexpr CudaBackend backend{run_steps_on_gpus, describe_gpus, calibrate_on_gpus,
                                       bench_on_gpus};
  return &backend;
}

}  // namespace rehearse
