// Kernels with a choice of mistakes, and without: what the emulated machine must notice.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace rehearse {

enum class Mistake : unsigned char {
  none,
  no_barrier,         // reads shared memory before it is written
  divergent_barrier,  // half of the threads wait at another line
  early_return,       // half of the threads have left before the barrier
  missing_lane,       // a shuffle that one lane of its mask never reaches
  wrong_mask,         // lanes of one warp with different masks
  write_behind,       // one number behind the end
  write_before,       // one number before the begin
  hidden_pointer,     // the address comes inside of a structure
  unequal_loops,      // threads pass barriers a different number of times
  no_syncwarp,        // lanes read what others wrote, behind a shuffle only
  no_atomic,          // blocks add to one place
};

/// sum of x[0 … count) into *total, by one block of 128 threads.
cudaError_t sum_with(Mistake mistake, cudaStream_t stream, const float* x, std::size_t count,
                     float* total);
/// y[i] = x[i] + 1
cudaError_t increment_with(Mistake mistake, cudaStream_t stream, const float* x, float* y,
                           std::size_t count);
/// y[i] = x[31 - i], by one warp through shared memory.
cudaError_t turn_with(Mistake mistake, cudaStream_t stream, const float* x, float* y);
/// *count += 1 by each of four blocks.
cudaError_t count_with(Mistake mistake, cudaStream_t stream, unsigned* count);
/// Asks for so much shared memory.
cudaError_t use_shared(cudaStream_t stream, std::size_t bytes);

}  // namespace rehearse
