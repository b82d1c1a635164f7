// Losses on a GPU as Programs call them: over a vocabulary that is cut over ranks, and over classes
// whose logits were gathered part behind part. A block a row; the sum of the losses by one block.
#include "kernels/math/cuda_exp_sum.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/step_state.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__device__ double wide(float value) { return static_cast<double>(value); }

__device__ std::size_t column_of(const VocabularyPart& part, Token word) {
  const auto number = static_cast<std::int64_t>(word) - static_cast<std::int64_t>(part.first);
  return number >= 0 && static_cast<std::size_t>(number) < part.valid
             ? static_cast<std::size_t>(number)
             : part.shape.width;
}

__global__ void __launch_bounds__(block_size)
    vocabulary_max_kernel(const float* logits, VocabularyPart part, float* largest) {
  const float* row = logits + blockIdx.x * part.shape.width;
  float most = -INFINITY;
  for (std::size_t c = threadIdx.x; c < part.valid; c += blockDim.x) most = Larger{}(most, row[c]);
  most = block_max(most);
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

__global__ void __launch_bounds__(block_size)
    vocabulary_sums_kernel(const float* logits, const Token* targets, const float* largest,
                           VocabularyPart part, float* target, float* sum) {
  const float* row = logits + blockIdx.x * part.shape.width;
  const float most = largest[blockIdx.x];
  double powers = 0;
  for (std::size_t c = threadIdx.x; c < part.valid; c += blockDim.x)
    powers += wide(expf(row[c] - most));
  powers = block_sum(powers);
  if (threadIdx.x != 0) return;
  const std::size_t column = column_of(part, targets[blockIdx.x]);
  target[blockIdx.x] = column < part.shape.width ? row[column] - most : 0.0F;
  sum[blockIdx.x] = static_cast<float>(powers);
}

__global__ void __launch_bounds__(block_size)
    vocabulary_softmax_kernel(const float* logits, const float* largest, const float* sum,
                              VocabularyPart part, float* probabilities) {
  const std::size_t begin = blockIdx.x * part.shape.width;
  const float most = largest[blockIdx.x], all = sum[blockIdx.x];
  for (std::size_t c = threadIdx.x; c < part.shape.width; c += blockDim.x)
    probabilities[begin + c] = c < part.valid ? expf(logits[begin + c] - most) / all : 0.0F;
}

__global__ void __launch_bounds__(block_size)
    vocabulary_losses_kernel(const float* target, const float* sum, std::size_t rows,
                             double* losses) {
  double all = 0;
  for (std::size_t r = threadIdx.x; r < rows; r += block_size)
    all += wide(logf(sum[r])) - wide(target[r]);
  all = block_sum(all);
  if (threadIdx.x == 0) *losses = all;
}

__global__ void __launch_bounds__(block_size)
    vocabulary_gradient_kernel(const float* probabilities, const Token* targets, double weight,
                               const StepState* state, VocabularyPart part, float* gradient) {
  const std::size_t begin = blockIdx.x * part.shape.width;
  const std::size_t column = column_of(part, targets[blockIdx.x]);
  const auto scale = static_cast<float>(weight * state->loss_scale);
  for (std::size_t c = threadIdx.x; c < part.shape.width; c += blockDim.x)
    gradient[begin + c] = (probabilities[begin + c] - (c == column ? 1.0F : 0.0F)) * scale;
}

// From [part][row][class of the part] to [row][class].
__global__ void __launch_bounds__(block_size)
    in_rows_kernel(const float* logits, RowShape shape, std::size_t parts, float* in_rows) {
  const std::size_t width = shape.width / parts;
  for (std::size_t i = global_thread(); i < shape.size(); i += grid_threads()) {
    const std::size_t row = i / shape.width, column = i % shape.width;
    in_rows[i] = logits[(column / width * shape.rows + row) * width + column % width];
  }
}

__global__ void __launch_bounds__(block_size)
    class_gradient_kernel(const float* logits, const Token* targets, std::size_t width,
                          double weight, const StepState* state, std::size_t first,
                          std::size_t count, float* gradient) {
  const float* row = logits + blockIdx.x * width;
  const RowPowers powers = powers_of(row, width);
  const auto right = static_cast<std::size_t>(targets[blockIdx.x]);
  const auto scale = static_cast<float>(weight * state->loss_scale);
  for (std::size_t c = threadIdx.x; c < count; c += blockDim.x) {
    const float probability = expf(row[first + c] - powers.largest) / powers.sum;
    gradient[blockIdx.x * count + c] = (probability - (first + c == right ? 1.0F : 0.0F)) * scale;
  }
}

}  // namespace

void vocabulary_max(DeviceStream stream, std::span<const float> logits, const VocabularyPart& part,
                    std::span<float> largest) {
  ASSERT(logits.size() == part.shape.size() && largest.size() == part.shape.rows);
  if (largest.empty()) return;
  launch(stream, row_launch(part.shape), vocabulary_max_kernel, logits.data(), part,
         largest.data());
}

void vocabulary_sums(DeviceStream stream, std::span<const float> logits,
                     std::span<const Token> targets, std::span<const float> largest,
                     const VocabularyPart& part, std::span<float> target, std::span<float> sum) {
  ASSERT(logits.size() == part.shape.size() && targets.size() == part.shape.rows);
  ASSERT(target.size() == part.shape.rows && sum.size() == part.shape.rows);
  if (sum.empty()) return;
  launch(stream, row_launch(part.shape), vocabulary_sums_kernel, logits.data(), targets.data(),
         largest.data(), part, target.data(), sum.data());
}

void vocabulary_softmax(DeviceStream stream, std::span<const float> logits,
                        std::span<const float> largest, std::span<const float> target,
                        std::span<const float> sum, const VocabularyPart& part,
                        std::span<float> probabilities, double* losses) {
  ASSERT(logits.size() == part.shape.size() && probabilities.size() == part.shape.size());
  ASSERT(target.size() == part.shape.rows && sum.size() == part.shape.rows);
  if (part.shape.size() > 0)
    launch(stream, row_launch(part.shape), vocabulary_softmax_kernel, logits.data(), largest.data(),
           sum.data(), part, probabilities.data());
  launch(stream, {}, vocabulary_losses_kernel, target.data(), sum.data(), part.shape.rows, losses);
}

void vocabulary_gradient(DeviceStream stream, std::span<const float> probabilities,
                         std::span<const Token> targets, double weight, const StepState* state,
                         const VocabularyPart& part, std::span<float> gradient) {
  ASSERT(probabilities.size() == part.shape.size() && gradient.size() == part.shape.size());
  ASSERT(targets.size() == part.shape.rows);
  if (gradient.empty()) return;
  launch(stream, row_launch(part.shape), vocabulary_gradient_kernel, probabilities.data(),
         targets.data(), weight, state, part, gradient.data());
}

void gather_classes(DeviceStream stream, std::span<const float> logits, RowShape shape,
                    std::size_t parts, std::span<float> in_rows) {
  ASSERT(logits.size() == shape.size() && in_rows.size() == shape.size());
  ASSERT(parts > 0 && shape.width % parts == 0);
  if (in_rows.empty()) return;
  launch(stream, {grid_for(shape.size())}, in_rows_kernel, logits.data(), shape, parts,
         in_rows.data());
}

void class_gradient(DeviceStream stream, std::span<const float> logits,
                    std::span<const Token> targets, RowShape shape, double weight,
                    const StepState* state, std::size_t first, std::span<float> gradient) {
  ASSERT(logits.size() == shape.size() && targets.size() == shape.rows);
  if (gradient.empty()) return;
  const std::size_t count = gradient.size() / shape.rows;
  ASSERT(gradient.size() == shape.rows * count && first + count <= shape.width);
  launch(stream, row_launch(shape), class_gradient_kernel, logits.data(), targets.data(),
         shape.width, weight, state, first, count, gradient.data());
}

}  // namespace rehearse
