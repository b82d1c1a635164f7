// Layer norm and RMS norm on a GPU: a block takes a row, reads it once from memory and again from
// the cache (8 rows of 16k numbers fit an A100's L1). The gradients of the weights are column sums.
#include "kernels/math/cuda_columns.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct RowStatistics {
  float mean, rate;
};

// Two passes, mean first: the mean of squares minus the square of the mean would lose all digits
// beside a great mean.
template <bool centred>
__device__ RowStatistics statistics_of(const float* row, std::size_t width, float epsilon) {
  float mean = 0;
  if constexpr (centred) {
    float sum = 0;
    for (std::size_t c = threadIdx.x; c < width; c += blockDim.x) sum += row[c];
    mean = block_sum(sum) / static_cast<float>(width);
  }
  float squares = 0;
  for (std::size_t c = threadIdx.x; c < width; c += blockDim.x)
    squares = fmaf(row[c] - mean, row[c] - mean, squares);
  const float variance = block_sum(squares) / static_cast<float>(width);
  return {mean, 1 / sqrtf(variance + epsilon)};
}

template <bool centred>
__global__ void __launch_bounds__(block_size)
    norm_kernel(const float* x, const float* weight, const float* bias, RowShape shape,
                float epsilon, float* y, float* means, float* rates) {
  const float* row = x + blockIdx.x * shape.width;
  float* output = y + blockIdx.x * shape.width;
  const auto [mean, rate] = statistics_of<centred>(row, shape.width, epsilon);
  for (std::size_t c = threadIdx.x; c < shape.width; c += blockDim.x) {
    const float n = (row[c] - mean) * rate;
    output[c] = centred ? fmaf(n, weight[c], bias[c]) : n * weight[c];
  }
  if (threadIdx.x != 0) return;
  if constexpr (centred) means[blockIdx.x] = mean;
  rates[blockIdx.x] = rate;
}

template <bool centred>
__global__ void __launch_bounds__(block_size)
    norm_backward_kernel(const float* y_gradient, const float* x, const float* weight,
                         RowShape shape, const float* means, const float* rates,
                         float* x_gradient) {
  const std::size_t first = blockIdx.x * shape.width;
  const float mean = centred ? means[blockIdx.x] : 0, rate = rates[blockIdx.x];
  float sum = 0, product = 0;
  for (std::size_t c = threadIdx.x; c < shape.width; c += blockDim.x) {
    const float d = y_gradient[first + c] * weight[c];
    sum += d;
    product = fmaf(d, (x[first + c] - mean) * rate, product);
  }
  const float count = static_cast<float>(shape.width);
  const float mean_d = centred ? block_sum(sum) / count : 0;
  const float mean_dn = block_sum(product) / count;
  for (std::size_t c = threadIdx.x; c < shape.width; c += blockDim.x) {
    const float n = (x[first + c] - mean) * rate, d = y_gradient[first + c] * weight[c];
    x_gradient[first + c] = rate * (d - mean_d - n * mean_dn);
  }
}

template <bool centred>
__global__ void __launch_bounds__(block_size)
    norm_weights_kernel(const float* y_gradient, const float* x, RowShape shape, const float* means,
                        const float* rates, float* weight_gradient, float* bias_gradient) {
  const ColumnTile tile{shape};
  double weight_sum = 0, bias_sum = 0;
  for (std::size_t r = threadIdx.y; tile.is_inside && r < shape.rows; r += column_threads) {
    const std::size_t i = r * shape.width + tile.column;
    const float mean = centred ? means[r] : 0;
    weight_sum += static_cast<double>(y_gradient[i] * ((x[i] - mean) * rates[r]));
    if constexpr (centred) bias_sum += static_cast<double>(y_gradient[i]);
  }
  tile.add(weight_sum, weight_gradient);
  if constexpr (centred) tile.add(bias_sum, bias_gradient);
}

}  // namespace

void layer_norm(DeviceStream stream, std::span<const float> x, std::span<const float> weight,
                std::span<const float> bias, RowShape shape, float epsilon, std::span<float> y,
                NormStatistics statistics) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  ASSERT(weight.size() == shape.width && bias.size() == shape.width);
  ASSERT(statistics.mean.size() == shape.rows && statistics.rate.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), norm_kernel<true>, x.data(), weight.data(), bias.data(), shape,
         epsilon, y.data(), statistics.mean.data(), statistics.rate.data());
}

void layer_norm_input(DeviceStream stream, std::span<const float> y_gradient,
                      std::span<const float> x, std::span<const float> weight, RowShape shape,
                      NormStatistics statistics, std::span<float> x_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(x_gradient.size() == shape.size() && weight.size() == shape.width);
  ASSERT(statistics.mean.size() == shape.rows && statistics.rate.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), norm_backward_kernel<true>, y_gradient.data(), x.data(),
         weight.data(), shape, statistics.mean.data(), statistics.rate.data(), x_gradient.data());
}

void layer_norm_weights(DeviceStream stream, std::span<const float> y_gradient,
                        std::span<const float> x, RowShape shape, NormStatistics statistics,
                        std::span<float> weight_gradient, std::span<float> bias_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(weight_gradient.size() == shape.width && bias_gradient.size() == shape.width);
  ASSERT(statistics.mean.size() == shape.rows && statistics.rate.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, column_launch(shape), norm_weights_kernel<true>, y_gradient.data(), x.data(),
         shape, statistics.mean.data(), statistics.rate.data(), weight_gradient.data(),
         bias_gradient.data());
}

// The weights first: x_gradient may be y_gradient.
void layer_norm_backward(DeviceStream stream, std::span<const float> y_gradient,
                         std::span<const float> x, std::span<const float> weight, RowShape shape,
                         NormStatistics statistics, std::span<float> x_gradient,
                         std::span<float> weight_gradient, std::span<float> bias_gradient) {
  layer_norm_weights(stream, y_gradient, x, shape, statistics, weight_gradient, bias_gradient);
  layer_norm_input(stream, y_gradient, x, weight, shape, statistics, x_gradient);
}

void rms_norm(DeviceStream stream, std::span<const float> x, std::span<const float> weight,
              RowShape shape, float epsilon, std::span<float> y, std::span<float> rate) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  ASSERT(weight.size() == shape.width && rate.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), norm_kernel<false>, x.data(), weight.data(), nullptr, shape,
         epsilon, y.data(), nullptr, rate.data());
}

void rms_norm_input(DeviceStream stream, std::span<const float> y_gradient,
                    std::span<const float> x, std::span<const float> weight, RowShape shape,
                    std::span<const float> rate, std::span<float> x_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(x_gradient.size() == shape.size() && weight.size() == shape.width);
  ASSERT(rate.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, row_launch(shape), norm_backward_kernel<false>, y_gradient.data(), x.data(),
         weight.data(), shape, nullptr, rate.data(), x_gradient.data());
}

void rms_norm_weights(DeviceStream stream, std::span<const float> y_gradient,
                      std::span<const float> x, RowShape shape, std::span<const float> rate,
                      std::span<float> weight_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(weight_gradient.size() == shape.width && rate.size() == shape.rows);
  if (shape.size() == 0) return;
  launch(stream, column_launch(shape), norm_weights_kernel<false>, y_gradient.data(), x.data(),
         shape, nullptr, rate.data(), weight_gradient.data(), nullptr);
}

void rms_norm_backward(DeviceStream stream, std::span<const float> y_gradient,
                       std::span<const float> x, std::span<const float> weight, RowShape shape,
                       std::span<const float> rate, std::span<float> x_gradient,
                       std::span<float> weight_gradient) {
  rms_norm_weights(stream, y_gradient, x, shape, rate, weight_gradient);
  rms_norm_input(stream, y_gradient, x, weight, shape, rate, x_gradient);
}

}  // namespace rehearse
