// Softmax on a GPU, a block a row: from memory once, then twice from the cache.
#include "kernels/math/cuda_exp_sum.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__global__ void __launch_bounds__(block_size)
    softmax_kernel(const float* x, std::size_t width, float* y) {
  const float* row = x + blockIdx.x * width;
  float* output = y + blockIdx.x * width;
  const RowPowers powers = powers_of(row, width);
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x)
    output[c] = powers.sum == 0 ? 0.0F : expf(row[c] - powers.largest) / powers.sum;
}

__global__ void __launch_bounds__(block_size)
    softmax_backward_kernel(const float* y_gradient, const float* y, std::size_t width,
                            float* x_gradient) {
  const std::size_t first = blockIdx.x * width;
  float product = 0;
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x)
    product = fmaf(y[first + c], y_gradient[first + c], product);
  product = block_sum(product);
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x)
    x_gradient[first + c] = y[first + c] * (y_gradient[first + c] - product);
}

}  // namespace

void softmax(DeviceStream stream, std::span<const float> x, RowShape shape, std::span<float> y) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), softmax_kernel, x.data(), shape.width, y.data());
}

void softmax_backward(DeviceStream stream, std::span<const float> y_gradient,
                      std::span<const float> y, RowShape shape, std::span<float> x_gradient) {
  ASSERT(y_gradient.size() == shape.size() && y.size() == shape.size());
  ASSERT(x_gradient.size() == shape.size());
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), softmax_backward_kernel, y_gradient.data(), y.data(),
         shape.width, x_gradient.data());
}

}  // namespace rehearse
