// Cross-entropy on a GPU: a block a row, then one block for the sum of the losses.
#include "kernels/math/cuda_exp_sum.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

// A target outside of the vocabulary has no loss to give: NaN, which nothing hides.
__global__ void __launch_bounds__(block_size)
    cross_entropy_kernel(const float* logits, const Token* targets, std::size_t width,
                         float* losses) {
  const Token target = targets[blockIdx.x];
  float loss = 0;
  if (target != ignored_token) {
    const float* row = logits + blockIdx.x * width;
    const RowPowers powers = powers_of(row, width);
    const auto right = static_cast<std::size_t>(target);
    loss = right < width ? (powers.largest - row[right]) + logf(powers.sum) : NAN;
  }
  if (threadIdx.x == 0) losses[blockIdx.x] = loss;
}

__global__ void __launch_bounds__(block_size)
    loss_sum_kernel(const float* losses, const Token* targets, std::size_t rows, LossSum* total) {
  double sum = 0;
  unsigned counted = 0;
  for (std::size_t r = threadIdx.x; r < rows; r += block_size) {
    sum += static_cast<double>(losses[r]);
    counted += targets[r] == ignored_token ? 0 : 1;
  }
  sum = block_sum(sum);
  counted = block_sum(counted);
  if (threadIdx.x != 0) return;
  total->sum = sum;
  total->counted = counted;
}

__global__ void __launch_bounds__(block_size)
    cross_entropy_backward_kernel(const float* logits, const Token* targets, std::size_t width,
                                  float scale, float* logit_gradient) {
  const Token target = targets[blockIdx.x];
  const float* row = logits + blockIdx.x * width;
  float* gradient = logit_gradient + blockIdx.x * width;
  if (target == ignored_token) {
    for (std::size_t c = threadIdx.x; c < width; c += blockDim.x) gradient[c] = 0;
    return;
  }
  const RowPowers powers = powers_of(row, width);
  const auto right = static_cast<std::size_t>(target);
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x) {
    const float probability = expf(row[c] - powers.largest) / powers.sum;
    gradient[c] = (probability - (c == right ? 1.0F : 0.0F)) * scale;
  }
}

}  // namespace

void cross_entropy(DeviceStream stream, std::span<const float> logits,
                   std::span<const Token> targets, RowShape shape, std::span<float> losses,
                   LossSum* total) {
  ASSERT(logits.size() == shape.size());
  ASSERT(targets.size() == shape.rows && losses.size() == shape.rows);
  if (shape.rows > 0)
    launch(stream, row_launch(shape), cross_entropy_kernel, logits.data(), targets.data(),
           shape.width, losses.data());
  launch(stream, {}, loss_sum_kernel, losses.data(), targets.data(), shape.rows, total);
}

void cross_entropy_backward(DeviceStream stream, std::span<const float> logits,
                            std::span<const Token> targets, RowShape shape, float scale,
                            std::span<float> logit_gradient) {
  ASSERT(logits.size() == shape.size() && logit_gradient.size() == shape.size());
  ASSERT(targets.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), cross_entropy_backward_kernel, logits.data(), targets.data(),
         shape.width, scale, logit_gradient.data());
}

}  // namespace rehearse
