// Written as a .cu file is: the header before all others says what CUDA's words mean.
#include "tests/emulated_cuda/device.hpp"
//
#include "tests/emulated_cuda/broken_kernels.hpp"

namespace rehearse {

namespace {

constexpr unsigned threads = 128, all = 0xffffffffU;

void wait_for_block(Mistake mistake) {
  if (mistake == Mistake::no_barrier) return;
  if (mistake == Mistake::early_return && threadIdx.x % 2 == 1) return;
  if (mistake == Mistake::unequal_loops && threadIdx.x == 5) __syncthreads();
  if (mistake == Mistake::divergent_barrier && threadIdx.x % 2 == 1)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void sum_kernel(Mistake mistake, const float* x, std::size_t count, float* total) {
  __shared__ float warps[threads / 32];
  if (mistake == Mistake::no_barrier && threadIdx.x == 0)
    for (float& warp : warps) warp = 0;  // what an earlier block left would hide it
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < count; i += threads) sum += x[i];
  if (mistake == Mistake::missing_lane && threadIdx.x == 77) return;
  const unsigned mask = mistake == Mistake::wrong_mask && threadIdx.x % 2 == 1 ? all - 1 : all;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(mask, sum, distance);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  wait_for_block(mistake);
  if (threadIdx.x == 0) *total = warps[0] + warps[1] + warps[2] + warps[3];
}

__global__ void increment_kernel(Mistake mistake, const float* x, float* y, std::size_t count) {
  const std::size_t i = threadIdx.x;
  if (i < count) y[i] = x[i] + 1;
  if (mistake == Mistake::write_behind && i == 0) y[count] = 0;
  if (mistake == Mistake::write_before && i == 0) y[-1] = 0;
}

struct Hidden {
  const float* x;
  float* y;
  std::size_t count;
};
__global__ void increment_hidden_kernel(Hidden arrays) {
  if (threadIdx.x < arrays.count) arrays.y[threadIdx.x] = arrays.x[threadIdx.x] + 1;
}

__global__ void turn_kernel(Mistake mistake, const float* x, float* y) {
  __shared__ float numbers[32];
  const unsigned lane = threadIdx.x;
  numbers[lane] = x[lane];
  if (mistake == Mistake::no_syncwarp)
    __shfl_xor_sync(all, 0, 1);
  else
    __syncwarp();
  y[lane] = numbers[31 - lane];
}

__global__ void count_kernel(Mistake mistake, unsigned* count) {
  if (threadIdx.x > 0) return;
  if (mistake == Mistake::no_atomic)
    *count += 1;
  else
    atomicAdd(count, 1U);
}

__global__ void shared_kernel() { static_cast<float*>(::emulated_cuda::dynamic_shared())[0] = 1; }

cudaLaunchConfig_t one_block(cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3{1};
  config.blockDim = dim3{threads};
  config.stream = stream;
  return config;
}

}  // namespace

cudaError_t sum_with(Mistake mistake, cudaStream_t stream, const float* x, std::size_t count,
                     float* total) {
  const cudaLaunchConfig_t config = one_block(stream);
  return cudaLaunchKernelEx(&config, sum_kernel, mistake, x, count, total);
}

cudaError_t increment_with(Mistake mistake, cudaStream_t stream, const float* x, float* y,
                           std::size_t count) {
  const cudaLaunchConfig_t config = one_block(stream);
  if (mistake == Mistake::hidden_pointer)
    return cudaLaunchKernelEx(&config, increment_hidden_kernel, Hidden{x, y, count});
  return cudaLaunchKernelEx(&config, increment_kernel, mistake, x, y, count);
}

cudaError_t turn_with(Mistake mistake, cudaStream_t stream, const float* x, float* y) {
  cudaLaunchConfig_t config = one_block(stream);
  config.blockDim = dim3{32};
  return cudaLaunchKernelEx(&config, turn_kernel, mistake, x, y);
}

cudaError_t count_with(Mistake mistake, cudaStream_t stream, unsigned* count) {
  cudaLaunchConfig_t config = one_block(stream);
  config.gridDim = dim3{4};
  return cudaLaunchKernelEx(&config, count_kernel, mistake, count);
}

cudaError_t use_shared(cudaStream_t stream, std::size_t bytes) {
  cudaLaunchConfig_t config = one_block(stream);
  config.dynamicSmemBytes = bytes;
  return cudaLaunchKernelEx(&config, shared_kernel);
}

}  // namespace rehearse
