// Collectives as NCCL's own, in place where the Program's are.
#pragma once

#include "kernels/cuda/cuda_communicators.hpp"
#include "kernels/cuda/cuda_streams.hpp"

namespace rehearse {

/// This process's part of a collective, on the op's streams.
void start_collective(const Program& program, const Program::Op& op, const CudaMemory& memory,
                      CudaStreams& streams, CudaCommunicators& communicators);

}  // namespace rehearse
