// Gather, scatter and clear on a GPU, and the state of Deep Gradient Compression around them: one
// thread an index.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__global__ void __launch_bounds__(block_size)
    gather_kernel(const float* source, const std::uint32_t* indices, float* target,
                  std::size_t count) {
  for (std::size_t i = global_thread(); i < count; i += grid_threads())
    target[i] = source[indices[i]];
}

__global__ void __launch_bounds__(block_size)
    scatter_add_kernel(const float* values, const std::uint32_t* indices, float* target,
                       std::size_t count) {
  for (std::size_t i = global_thread(); i < count; i += grid_threads())
    target[indices[i]] += values[i];
}

__global__ void __launch_bounds__(block_size)
    clear_kernel(const std::uint32_t* indices, float* target, std::size_t count) {
  for (std::size_t i = global_thread(); i < count; i += grid_threads()) target[indices[i]] = 0;
}

__global__ void __launch_bounds__(block_size)
    correct_momentum_kernel(const float* gradient, float momentum, float* velocity,
                            float* accumulated, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) {
    const float u = momentum * velocity[i] + gradient[i];
    velocity[i] = u;
    accumulated[i] += u;
  }
}

__global__ void __launch_bounds__(block_size)
    take_out_kernel(float* velocity, float* accumulated, const std::uint32_t* indices,
                    float* values, std::size_t count) {
  for (std::size_t i = global_thread(); i < count; i += grid_threads()) {
    values[i] = accumulated[indices[i]];
    accumulated[indices[i]] = 0;
    velocity[indices[i]] = 0;
  }
}

}  // namespace

void sparse_gather(DeviceStream stream, std::span<const float> source,
                   std::span<const std::uint32_t> indices, std::span<float> target) {
  ASSERT(indices.size() == target.size());
  if (target.empty()) return;
  launch(stream, {grid_for(target.size())}, gather_kernel, source.data(), indices.data(),
         target.data(), target.size());
}

void sparse_scatter_add(DeviceStream stream, std::span<const float> values,
                        std::span<const std::uint32_t> indices, std::span<float> target) {
  ASSERT(indices.size() == values.size());
  if (values.empty()) return;
  launch(stream, {grid_for(values.size())}, scatter_add_kernel, values.data(), indices.data(),
         target.data(), values.size());
}

void sparse_clear(DeviceStream stream, std::span<const std::uint32_t> indices,
                  std::span<float> target) {
  if (indices.empty()) return;
  launch(stream, {grid_for(indices.size())}, clear_kernel, indices.data(), target.data(),
         indices.size());
}

void correct_momentum(DeviceStream stream, std::span<const float> gradient, float momentum,
                      CompressionState state) {
  ASSERT(state.velocity.size() == gradient.size());
  ASSERT(state.accumulated.size() == gradient.size());
  if (gradient.empty()) return;
  launch(stream, {grid_for(gradient.size())}, correct_momentum_kernel, gradient.data(), momentum,
         state.velocity.data(), state.accumulated.data(), gradient.size());
}

void take_out(DeviceStream stream, CompressionState state, std::span<const std::uint32_t> indices,
              std::span<float> values) {
  ASSERT(indices.size() == values.size());
  if (indices.empty()) return;
  launch(stream, {grid_for(indices.size())}, take_out_kernel, state.velocity.data(),
         state.accumulated.data(), indices.data(), values.data(), indices.size());
}

}  // namespace rehearse
