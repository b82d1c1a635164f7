// Learned and rotary positions on a GPU: one thread a number, or a pair of them.
#include <cmath>

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__global__ void __launch_bounds__(block_size)
    add_positions_kernel(const float* table, std::size_t period, float* y, std::size_t numbers) {
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) y[i] += table[i % period];
}

// A thread has its number of the table, and adds what is for it in the order of rows.
__global__ void __launch_bounds__(block_size)
    positions_backward_kernel(const float* y_gradient, std::size_t numbers, std::size_t period,
                              float* table_gradient) {
  for (std::size_t at = global_thread(); at < period; at += grid_threads()) {
    float sum = table_gradient[at];
    for (std::size_t i = at; i < numbers; i += period) sum += y_gradient[i];
    table_gradient[at] = sum;
  }
}

// In half turns, whose sine and cosine need no table for large angles (and so no stack).
__global__ void __launch_bounds__(block_size)
    rotate_kernel(const float* x, Rotation rotation, double log_base, float* y, std::size_t pairs) {
  const std::size_t half = rotation.head_width / 2;
  for (std::size_t i = global_thread(); i < pairs; i += grid_threads()) {
    const std::size_t j = i % half, head = i / half;
    const std::size_t row = head * rotation.head_width / rotation.shape.width;
    const double power = static_cast<double>(2 * j) / static_cast<double>(rotation.head_width);
    const double half_turns =
        static_cast<double>(row % rotation.length) * exp2(-power * log_base) * 0.31830988618379067;
    const double cosine = cospi(half_turns);
    const double sine = rotation.back ? -sinpi(half_turns) : sinpi(half_turns);
    const std::size_t at = head * rotation.head_width + j, other = at + half;
    const auto a = static_cast<double>(x[at]), b = static_cast<double>(x[other]);
    y[at] = static_cast<float>(a * cosine - b * sine);
    y[other] = static_cast<float>(a * sine + b * cosine);
  }
}

}  // namespace

void add_positions(DeviceStream stream, std::span<const float> table, RowShape shape,
                   std::size_t length, std::span<float> y) {
  ASSERT(y.size() == shape.size() && length > 0 && table.size() >= length * shape.width);
  if (y.empty()) return;
  launch(stream, {grid_for(y.size())}, add_positions_kernel, table.data(), length * shape.width,
         y.data(), y.size());
}

void positions_backward(DeviceStream stream, std::span<const float> y_gradient, RowShape shape,
                        std::size_t length, std::span<float> table_gradient) {
  ASSERT(y_gradient.size() == shape.size() && length > 0);
  ASSERT(table_gradient.size() >= length * shape.width);
  if (y_gradient.empty()) return;
  launch(stream, {grid_for(length * shape.width)}, positions_backward_kernel, y_gradient.data(),
         y_gradient.size(), length * shape.width, table_gradient.data());
}

void rotate(DeviceStream stream, std::span<const float> x, const Rotation& rotation,
            std::span<float> y) {
  const std::size_t head = rotation.head_width;
  ASSERT(x.size() == rotation.shape.size() && y.size() == x.size());
  ASSERT(head > 0 && head % 2 == 0 && rotation.shape.width % head == 0 && rotation.length > 0);
  if (x.empty()) return;
  launch(stream, {grid_for(x.size() / 2)}, rotate_kernel, x.data(), rotation,
         std::log2(rotation.base), y.data(), x.size() / 2);
}

}  // namespace rehearse
