// Gradients as 8-bit codes on a GPU. The scale stays on the device, where the codes are made.
#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

// Of numbers that are not negative, bits compare as the numbers do; a maximum has no order.
__global__ void __launch_bounds__(block_size)
    largest_kernel(const float* x, std::size_t numbers, std::uint32_t* largest_bits) {
  float largest = 0;
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    largest = fmaxf(largest, fabsf(x[i]));
  largest = block_max(largest);
  if (threadIdx.x == 0) atomicMax(largest_bits, __float_as_uint(largest));
}

__global__ void scale_kernel(const float* largest, float levels, float* scale) {
  *scale = *largest / levels;
}

__global__ void __launch_bounds__(block_size)
    quantize_kernel(const float* x, const float* scale, std::int8_t* codes, std::size_t numbers) {
  const float step = *scale;
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) {
    const float steps = step == 0 ? 0.0F : rintf(x[i] / step);
    codes[i] = static_cast<std::int8_t>(fminf(fmaxf(steps, -127.0F), 127.0F));
  }
}

template <class Code>
__global__ void __launch_bounds__(block_size)
    dequantize_kernel(const Code* codes, const float* scale, float* x, std::size_t numbers) {
  const float step = *scale;
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    x[i] = static_cast<float>(codes[i]) * step;
}

template <class Sum>
__global__ void __launch_bounds__(block_size)
    add_codes_kernel(const std::int8_t* codes, Sum* sum, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    sum[i] = static_cast<Sum>(sum[i] + codes[i]);
}

}  // namespace

void largest_magnitude(DeviceStream stream, std::span<const float> x, float* largest) {
  CUDA_TRY(cudaMemsetAsync(largest, 0, sizeof(*largest), stream));
  launch(stream, {grid_for(x.size(), 4 * block_size)}, largest_kernel, x.data(), x.size(),
         reinterpret_cast<std::uint32_t*>(largest));
}

void int8_scale(DeviceStream stream, std::span<const float> x, float* scale) {
  largest_magnitude(stream, x, scale);
  launch(stream, {dim3{1}, dim3{1}}, scale_kernel, static_cast<const float*>(scale), 127.0F, scale);
}

void shared_int8_scale(DeviceStream stream, const float* largest, std::size_t ranks, float* scale) {
  ASSERT(ranks > 0 && ranks <= 127);
  const auto levels = static_cast<float>(127 / ranks);
  launch(stream, {dim3{1}, dim3{1}}, scale_kernel, largest, levels, scale);
}

void quantize(DeviceStream stream, std::span<const float> x, const float* scale,
              std::span<std::int8_t> codes) {
  ASSERT(x.size() == codes.size());
  if (x.empty()) return;
  launch(stream, {grid_for(x.size())}, quantize_kernel, x.data(), scale, codes.data(), x.size());
}

void dequantize(DeviceStream stream, std::span<const std::int8_t> codes, const float* scale,
                std::span<float> x) {
  ASSERT(x.size() == codes.size());
  if (x.empty()) return;
  launch(stream, {grid_for(x.size())}, dequantize_kernel<std::int8_t>, codes.data(), scale,
         x.data(), x.size());
}

void add_codes(DeviceStream stream, std::span<const std::int8_t> codes,
               std::span<std::int32_t> sum) {
  ASSERT(codes.size() == sum.size());
  if (sum.empty()) return;
  launch(stream, {grid_for(sum.size())}, add_codes_kernel<std::int32_t>, codes.data(), sum.data(),
         sum.size());
}

void add_codes(DeviceStream stream, std::span<const std::int8_t> codes,
               std::span<std::int8_t> sum) {
  ASSERT(codes.size() == sum.size());
  if (sum.empty()) return;
  launch(stream, {grid_for(sum.size())}, add_codes_kernel<std::int8_t>, codes.data(), sum.data(),
         sum.size());
}

void dequantize(DeviceStream stream, std::span<const std::int32_t> sums, const float* scale,
                std::span<float> x) {
  ASSERT(x.size() == sums.size());
  if (x.empty()) return;
  launch(stream, {grid_for(x.size())}, dequantize_kernel<std::int32_t>, sums.data(), scale,
         x.data(), x.size());
}

}  // namespace rehearse
