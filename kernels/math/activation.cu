// GELU with its bias, SiLU and SwiGLU on a GPU. In fp32: an fp64 tanh would take longer than the
// memory. A row of the grid's y axis is a row of the matrix, so that no index is divided.
#include <numbers>

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

constexpr float cubic = 0.044715F;
constexpr float tanh_rate = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;

struct TanhGelu {
  static __device__ float value(float x) {
    return 0.5F * x * (1 + tanhf(tanh_rate * (x + cubic * x * x * x)));
  }
  static __device__ float slope(float x) {
    const float t = tanhf(tanh_rate * (x + cubic * x * x * x));
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * tanh_rate * (1 + 3 * cubic * x * x);
  }
};
struct ErfGelu {
  static __device__ float cdf(float x) { return 0.5F * erfcf(-x / std::numbers::sqrt2_v<float>); }
  static __device__ float value(float x) { return x * cdf(x); }
  static __device__ float slope(float x) {
    constexpr float top = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
    return cdf(x) + x * (expf(-0.5F * x * x) * top);
  }
};
struct Silu {
  static __device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
  static __device__ float value(float x) { return x * sigmoid(x); }
  static __device__ float slope(float x) {
    const float s = sigmoid(x);
    return s * (1 + x * (1 - s));
  }
};
struct Relu {
  static __device__ float value(float x) { return x < 0 ? 0.0F : x; }  // a NaN is handed on
};
struct Identity {
  static __device__ float value(float x) { return x; }
};

// Rows in the grid's y, columns in its x; both go on in strides where the grid is too small.
Launch row_grid(RowShape shape) {
  constexpr std::size_t most_rows = 65535;
  return {dim3{grid_for(shape.width).x,
               static_cast<unsigned>(std::clamp<std::size_t>(shape.rows, 1, most_rows))}};
}

template <class Curve>
__global__ void __launch_bounds__(block_size)
    bias_curve_kernel(const float* x, const float* bias, RowShape shape, float* y) {
  for (std::size_t r = blockIdx.y; r < shape.rows; r += gridDim.y)
    for (std::size_t c = global_thread(); c < shape.width; c += grid_threads())
      y[r * shape.width + c] = Curve::value(x[r * shape.width + c] + bias[c]);
}

template <class Curve>
__global__ void __launch_bounds__(block_size)
    bias_slope_kernel(const float* y_gradient, const float* x, const float* bias, RowShape shape,
                      float* x_gradient) {
  for (std::size_t r = blockIdx.y; r < shape.rows; r += gridDim.y)
    for (std::size_t c = global_thread(); c < shape.width; c += grid_threads()) {
      const std::size_t i = r * shape.width + c;
      x_gradient[i] = y_gradient[i] * Curve::slope(x[i] + bias[c]);
    }
}

template <class Curve>
__global__ void __launch_bounds__(block_size)
    curve_kernel(const float* x, float* y, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) y[i] = Curve::value(x[i]);
}

template <class Curve>
__global__ void __launch_bounds__(block_size)
    slope_kernel(const float* y_gradient, const float* x, float* x_gradient, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    x_gradient[i] = y_gradient[i] * Curve::slope(x[i]);
}

__global__ void __launch_bounds__(block_size)
    relu_backward_kernel(const float* y_gradient, const float* y, float* x_gradient,
                         std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    x_gradient[i] = y[i] > 0 ? y_gradient[i] : 0.0F;
}

__global__ void __launch_bounds__(block_size)
    swiglu_kernel(const float* gate, const float* up, float* y, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    y[i] = Silu::value(gate[i]) * up[i];
}

__global__ void __launch_bounds__(block_size)
    swiglu_backward_kernel(const float* y_gradient, const float* gate, const float* up,
                           float* gate_gradient, float* up_gradient, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) {
    const float dy = y_gradient[i], g = gate[i], u = up[i];
    gate_gradient[i] = dy * u * Silu::slope(g);
    up_gradient[i] = dy * Silu::value(g);
  }
}

}  // namespace

void bias_gelu(DeviceStream stream, std::span<const float> x, std::span<const float> bias,
               RowShape shape, GeluForm form, std::span<float> y) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size() && bias.size() == shape.width);
  if (shape.size() == 0) return;
  launch(stream, row_grid(shape),
         form == GeluForm::tanh ? bias_curve_kernel<TanhGelu> : bias_curve_kernel<ErfGelu>,
         x.data(), bias.data(), shape, y.data());
}

void bias_gelu_backward(DeviceStream stream, std::span<const float> y_gradient,
                        std::span<const float> x, std::span<const float> bias, RowShape shape,
                        GeluForm form, std::span<float> x_gradient,
                        std::span<float> bias_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(bias.size() == shape.width && x_gradient.size() == shape.size());
  if (shape.size() == 0) return;
  launch(stream, row_grid(shape),
         form == GeluForm::tanh ? bias_slope_kernel<TanhGelu> : bias_slope_kernel<ErfGelu>,
         y_gradient.data(), x.data(), bias.data(), shape, x_gradient.data());
  if (!bias_gradient.empty()) add_column_sums(stream, x_gradient, shape, bias_gradient);
}

void add_bias(DeviceStream stream, std::span<const float> x, std::span<const float> bias,
              RowShape shape, std::span<float> y) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size() && bias.size() == shape.width);
  if (shape.size() == 0) return;
  launch(stream, row_grid(shape), bias_curve_kernel<Identity>, x.data(), bias.data(), shape,
         y.data());
}

void relu(DeviceStream stream, std::span<const float> x, std::span<float> y) {
  ASSERT(x.size() == y.size());
  if (y.empty()) return;
  launch(stream, {grid_for(y.size())}, curve_kernel<Relu>, x.data(), y.data(), y.size());
}

void relu_backward(DeviceStream stream, std::span<const float> y_gradient, std::span<const float> y,
                   std::span<float> x_gradient) {
  ASSERT(y_gradient.size() == y.size() && x_gradient.size() == y.size());
  if (y.empty()) return;
  launch(stream, {grid_for(y.size())}, relu_backward_kernel, y_gradient.data(), y.data(),
         x_gradient.data(), y.size());
}

void silu(DeviceStream stream, std::span<const float> x, std::span<float> y) {
  ASSERT(x.size() == y.size());
  if (y.empty()) return;
  launch(stream, {grid_for(y.size())}, curve_kernel<Silu>, x.data(), y.data(), y.size());
}

void silu_backward(DeviceStream stream, std::span<const float> y_gradient, std::span<const float> x,
                   std::span<float> x_gradient) {
  ASSERT(y_gradient.size() == x.size() && x_gradient.size() == x.size());
  if (x.empty()) return;
  launch(stream, {grid_for(x.size())}, slope_kernel<Silu>, y_gradient.data(), x.data(),
         x_gradient.data(), x.size());
}

void swiglu(DeviceStream stream, std::span<const float> gate, std::span<const float> up,
            std::span<float> y) {
  ASSERT(gate.size() == y.size() && up.size() == y.size());
  if (y.empty()) return;
  launch(stream, {grid_for(y.size())}, swiglu_kernel, gate.data(), up.data(), y.data(), y.size());
}

void swiglu_backward(DeviceStream stream, std::span<const float> y_gradient,
                     std::span<const float> gate, std::span<const float> up,
                     std::span<float> gate_gradient, std::span<float> up_gradient) {
  ASSERT(y_gradient.size() == gate.size() && up.size() == gate.size());
  ASSERT(gate_gradient.size() == gate.size() && up_gradient.size() == gate.size());
  if (gate.empty()) return;
  launch(stream, {grid_for(gate.size())}, swiglu_backward_kernel, y_gradient.data(), gate.data(),
         up.data(), gate_gradient.data(), up_gradient.data(), gate.size());
}

}  // namespace rehearse
