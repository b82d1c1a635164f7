// LARS and LAMB on a GPU. Norms take two steps, both in a fixed order: a sum in fp64 for each block
// into scratch memory, then one block over those. The ratio stays on the device: no step waits for
// the host.
#include <cmath>

#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_optimizer.cuh"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__device__ double square(float value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

__global__ void __launch_bounds__(block_size)
    squares_kernel(const float* x, float factor, const StepFactors* factors, std::size_t numbers,
                   double* partial_sums) {
  if (factors != nullptr) factor = factors->gradient_factor;
  double sum = 0;
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads())
    sum += square(x[i] * factor);
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(block_size)
    add_up_kernel(const double* partial_sums, std::size_t count, double* result) {
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < count; i += block_size) sum += partial_sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

// A factor of 1 leaves every bit as it is.
void squares_of(DeviceStream stream, std::span<const float> x, float factor, NormScratch scratch,
                double* result, const StepFactors* factors = nullptr) {
  const dim3 grid = grid_for(x.size(), 4 * block_size);
  ASSERT(scratch.size() >= grid.x);
  launch(stream, {grid}, squares_kernel, x.data(), factor, factors, x.size(), scratch.data());
  launch(stream, {}, add_up_kernel, scratch.data(), grid.x, result);
}

__global__ void lars_ratio_kernel(Lars lars, const LayerSquares* squares, float* ratio) {
  const double w = sqrt(squares->weights), g = sqrt(squares->other);
  const double decay = static_cast<double>(lars.decay);
  *ratio = w == 0 || g == 0
               ? 1.0F
               : static_cast<float>(static_cast<double>(lars.trust) * w / (g + decay * w));
}

__global__ void lamb_ratio_kernel(const LayerSquares* squares, float* ratio) {
  const bool is_zero = squares->weights == 0 || squares->other == 0;
  *ratio = is_zero ? 1.0F : static_cast<float>(sqrt(squares->weights) / sqrt(squares->other));
}

struct LarsStep {
  Lars lars;
  const float* ratio;
  float* velocity;
  __device__ float operator()(std::size_t i, float w, float g) const {
    g += lars.decay * w;
    const float m = lars.momentum * velocity[i] + lars.rate * *ratio * g;
    velocity[i] = m;
    return w - m;
  }
};

// The "gradient" is the update here, with a factor of 1.
struct LambApply {
  float rate;
  const float* ratio;
  __device__ float operator()(std::size_t, float w, float update) const {
    return w - rate * *ratio * update;
  }
};
__device__ float factor_of(const LambApply&, const StepFactors&) { return 1; }

__global__ void __launch_bounds__(block_size)
    lamb_update_kernel(Lamb lamb, BiasCorrection correction, const StepFactors* factors,
                       const float* master, const float* gradient, float gradient_factor,
                       float* first, float* second, float* update, std::size_t numbers) {
  if (factors != nullptr) {
    if (factors->is_finite == 0) return;
    gradient_factor = factors->gradient_factor;
    correction = {factors->first, factors->second};
  }
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) {
    const float g = gradient[i] * gradient_factor;
    const float m = lamb.beta1 * first[i] + (1 - lamb.beta1) * g;
    const float v = lamb.beta2 * second[i] + (1 - lamb.beta2) * (g * g);
    first[i] = m;
    second[i] = v;
    const float adam = (m / correction.first) / (sqrtf(v / correction.second) + lamb.epsilon);
    update[i] = adam + lamb.decay * master[i];
  }
}

}  // namespace

std::size_t norm_scratch_numbers(std::size_t numbers) {
  return grid_for(numbers, 4 * block_size).x;
}

void sum_of_squares(DeviceStream stream, std::span<const float> x, NormScratch scratch,
                    double* result) {
  squares_of(stream, x, 1, scratch, result);
}

void lars_squares(DeviceStream stream, const Weights& weights, NormScratch scratch,
                  LayerSquares* squares, const StepFactors* factors) {
  ASSERT(weights.gradient.size() == weights.master.size());
  squares_of(stream, weights.master, 1, scratch, &squares->weights);
  squares_of(stream, weights.gradient, weights.gradient_factor, scratch, &squares->other, factors);
}

void lars_ratio(DeviceStream stream, const Lars& lars, const LayerSquares* squares, float* ratio) {
  launch(stream, {dim3{1}, dim3{1}}, lars_ratio_kernel, lars, squares, ratio);
}

void lars_step(DeviceStream stream, const Lars& lars, const Weights& weights,
               std::span<float> velocity, const float* ratio, const StepFactors* factors) {
  ASSERT(velocity.size() == weights.master.size());
  update_weights(stream, weights, LarsStep{lars, ratio, velocity.data()}, factors);
}

void lamb_update(DeviceStream stream, const Lamb& lamb, const Weights& weights, Moments moments,
                 std::uint64_t number, std::span<float> update, const StepFactors* factors) {
  const std::size_t numbers = weights.master.size();
  ASSERT(weights.gradient.size() == numbers && update.size() == numbers);
  ASSERT(moments.first.size() == numbers && moments.second.size() == numbers);
  if (numbers > 0)
    launch(stream, {grid_for(numbers)}, lamb_update_kernel, lamb,
           bias_correction(lamb.beta1, lamb.beta2, number), factors, weights.master.data(),
           weights.gradient.data(), weights.gradient_factor, moments.first.data(),
           moments.second.data(), update.data(), numbers);
}

void lamb_update(DeviceStream stream, const Lamb& lamb, const Weights& weights, Moments moments,
                 std::uint64_t number, std::span<float> update, NormScratch scratch,
                 LayerSquares* squares) {
  lamb_update(stream, lamb, weights, moments, number, update, nullptr);
  squares_of(stream, weights.master, 1, scratch, &squares->weights);
  squares_of(stream, update, 1, scratch, &squares->other);
}

void lamb_ratio(DeviceStream stream, const LayerSquares* squares, float* ratio) {
  launch(stream, {dim3{1}, dim3{1}}, lamb_ratio_kernel, squares, ratio);
}

void lamb_apply(DeviceStream stream, const Lamb& lamb, const Weights& weights,
                std::span<const float> update, const float* ratio, const StepFactors* factors) {
  ASSERT(update.size() == weights.master.size());
  Weights whole = weights;
  whole.gradient = update;
  whole.gradient_factor = 1;
  update_weights(stream, whole, LambApply{lamb.rate, ratio}, factors);
}

}  // namespace rehearse
