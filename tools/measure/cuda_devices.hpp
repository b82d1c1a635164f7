// Which GPU a rank has, and how its executor is told of the others; in binaries with CUDA only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_executor.hpp"
#include "tools/measure/cuda_backend.hpp"

namespace rehearse {

/// By rank. In one process ranks beyond the devices share them; of several processes each has a GPU
/// of its own (InputError if not), and the others' ranks are elsewhere.
std::vector<int> device_of_ranks(std::size_t ranks, const HostRanks& processes);
/// `stop` gives a run up; the processes must outlive what is run.
CudaOptions cuda_options(std::size_t ranks, const HostRanks& processes, std::function<bool()> stop);
/// NCCL reads it when the first communicator is made.
void choose(const CudaChoice& choice);
/// "4 ranks on 2 GPUs"
std::string describe_gpus(std::size_t ranks, const HostRanks& processes);

}  // namespace rehearse
