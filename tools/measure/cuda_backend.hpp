// What `--backend cuda` does, where the binary has it: `rehearse` itself needs no CUDA to start,
// and hands over to `rehearse-cuda` beside it, which is the same program linked with CUDA.
#pragma once

#include <string>

#include "tools/measure/bench_host.hpp"
#include "tools/measure/host_calibration.hpp"
#include "tools/measure/host_step.hpp"

namespace rehearse {

struct CudaChoice {
  std::string algorithm, protocol;  // of NCCL, in its own words; empty: its choice
  bool graph = false;               // each step as one CUDA graph
  bool cupti = false;               // times by CUPTI's records
};

/// Of bench's words: NCCL takes one name of each for a process, our schedules ("own") take no
/// protocol. Throws InputError.
CudaChoice nccl_choice(const std::string& library, const std::vector<std::string>& algorithms,
                       const std::vector<std::string>& protocols);

struct CudaBackend {
  HostSteps (*run_steps)(const HostStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
                         const HostStepOptions& options, const CudaChoice& choice);
  std::string (*describe)(std::size_t ranks, const HostRanks& processes);
  Profile (*calibrate)(const HostCalibration& what);
  void (*bench)(HostBench bench, const CudaChoice& choice);
};

/// Links, memory, products by type, collectives by algorithm and protocol, ours likewise, what
/// communication costs compute; only in a binary with CUDA.
Profile calibrate_on_gpus(const HostCalibration& what);

/// nccl-tests' table of NCCL's collectives or our schedules; only in a binary with CUDA.
void bench_on_gpus(HostBench bench, const CudaChoice& choice);

/// Null in a binary without it.
const CudaBackend* cuda_backend();

/// The backend; or it hands over to the program that has it, and does not return. Throws
/// NothingToRunOn where there is no GPU, or no such program.
const CudaBackend& need_cuda();

}  // namespace rehearse
