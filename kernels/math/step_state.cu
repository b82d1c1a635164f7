// What a step knows of itself, on the device: the factor of its gradients, whether it overflowed,
// how many came before. Optimizers read it there, so that no step waits for the host.
#include "kernels/math/step_state.hpp"

#include "kernels/math/cuda_device.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__global__ void step_factors_kernel(const StepState* state, float beta1, float beta2,
                                    StepFactors* factors) {
  const double number = state->taken + 1;
  factors->gradient_factor = static_cast<float>(state->gradient_factor);
  factors->first = static_cast<float>(1 - pow(static_cast<double>(beta1), number));
  factors->second = static_cast<float>(1 - pow(static_cast<double>(beta2), number));
  factors->is_finite = state->finite != 0 ? 1.0F : 0.0F;
}

__global__ void add_weighted_kernel(const double* part, double weight, double* sum) {
  *sum += weight * *part;
}

__global__ void round_sum_kernel(const double* sum, float* rounded) {
  *rounded = static_cast<float>(*sum);
}

__device__ float clip_factor_of(double norm, double limit) {
  return norm <= limit ? 1.0F : static_cast<float>(limit / norm);
}

__global__ void gradient_factor_kernel(const float* squares, double limit, StepState* state) {
  const double norm = sqrt(static_cast<double>(*squares)) / state->loss_scale;
  const float clip = state->finite != 0 ? clip_factor_of(norm, limit) : 1.0F;
  state->gradient_factor = static_cast<double>(clip) / state->loss_scale;
}

__global__ void count_step_kernel(StepState* state) {
  if (state->finite != 0)
    state->taken += 1;
  else
    state->skipped += 1;
}

__global__ void take_finite_kernel(const float* overflow, StepState* state) {
  state->finite = *overflow == 0 ? 1 : 0;
  state->gradient_factor = 1 / state->loss_scale;
}

// As LossScale::after (loss_scale.cpp).
__global__ void adjust_loss_scale_kernel(StepState* state, LossScale how) {
  const double scale = state->loss_scale;
  state->last_scale = scale;
  if (state->finite == 0) {
    state->loss_scale = fmax(how.least, scale * how.backoff);
    state->good_steps = 0;
  } else if (++state->good_steps == how.growth_interval) {
    state->loss_scale = fmin(how.largest, scale * how.growth);
    state->good_steps = 0;
  }
}

__global__ void scale_loss_kernel(const double* loss, const StepState* state, double* scaled) {
  *scaled = *loss * state->loss_scale;
}

__global__ void __launch_bounds__(block_size)
    clip_kernel(const double* squares, double limit, float* x, std::size_t numbers) {
  const float factor = clip_factor_of(sqrt(*squares), limit);
  if (factor == 1) return;
  for (std::size_t i = global_thread(); i < numbers; i += grid_threads()) x[i] *= factor;
}

}  // namespace

void step_factors(DeviceStream stream, const StepState* state, float beta1, float beta2,
                  StepFactors* factors) {
  launch(stream, {dim3{1}, dim3{1}}, step_factors_kernel, state, beta1, beta2, factors);
}

void add_weighted(DeviceStream stream, const double* part, double weight, double* sum) {
  launch(stream, {dim3{1}, dim3{1}}, add_weighted_kernel, part, weight, sum);
}

void round_sum(DeviceStream stream, const double* sum, float* rounded) {
  launch(stream, {dim3{1}, dim3{1}}, round_sum_kernel, sum, rounded);
}

void gradient_factor(DeviceStream stream, const float* squares, double limit, StepState* state) {
  ASSERT(limit > 0);
  launch(stream, {dim3{1}, dim3{1}}, gradient_factor_kernel, squares, limit, state);
}

void count_step(DeviceStream stream, StepState* state) {
  launch(stream, {dim3{1}, dim3{1}}, count_step_kernel, state);
}

void take_finite(DeviceStream stream, const float* overflow, StepState* state) {
  launch(stream, {dim3{1}, dim3{1}}, take_finite_kernel, overflow, state);
}

void adjust_loss_scale(DeviceStream stream, const LossScale& how, StepState* state) {
  launch(stream, {dim3{1}, dim3{1}}, adjust_loss_scale_kernel, state, how);
}

void scale_loss(DeviceStream stream, const double* loss, const StepState* state, double* scaled) {
  launch(stream, {dim3{1}, dim3{1}}, scale_loss_kernel, loss, state, scaled);
}

void clip_to(DeviceStream stream, const double* squares, double limit, std::span<float> x) {
  ASSERT(limit > 0);
  if (x.empty()) return;
  launch(stream, {grid_for(x.size())}, clip_kernel, squares, limit, x.data(), x.size());
}

}  // namespace rehearse
