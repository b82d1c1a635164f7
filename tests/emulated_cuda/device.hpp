// CUDA C++ for a plain C++ compiler: included before a .cu file, whose kernels then run as fibers.
// The real CUDA headers give the types and check every call; what they only declare is defined by
// the other files of this folder.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <tuple>
#include <type_traits>

#include "tests/emulated_cuda/atomics.hpp"
#include "tests/emulated_cuda/block.hpp"
#include "tests/emulated_cuda/launch.hpp"
#include "tests/emulated_cuda/warp.hpp"

// Blocks run one after another, so memory of a block may be memory of the program.
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static
#define __launch_bounds__(...)
#define cudaLaunchKernelEx ::emulated_cuda::launch

// Of the CUDA thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

using std::isnan;

inline void __syncthreads(emulated_cuda::Place place = {}) {
  ::emulated_cuda::block_barrier(0, place);
}
inline int __syncthreads_count(int vote, emulated_cuda::Place place = {}) {
  return ::emulated_cuda::block_barrier(vote != 0 ? 1 : 0, place);
}
inline int __syncthreads_or(int vote, emulated_cuda::Place place = {}) {
  return ::emulated_cuda::block_barrier(vote != 0 ? 1 : 0, place) != 0 ? 1 : 0;
}

inline double cospi(double half_turns) { return std::cos(half_turns * 3.14159265358979323846); }
inline double sinpi(double half_turns) { return std::sin(half_turns * 3.14159265358979323846); }

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __popc(unsigned word) { return std::popcount(word); }

/// A clock that moves whenever it is read, or nothing that waits for it would end.
inline long long clock64() { return ::emulated_cuda::next_clock(); }

template <class Number>
Number min(Number a, std::type_identity_t<Number> b) {
  return b < a ? b : a;
}
