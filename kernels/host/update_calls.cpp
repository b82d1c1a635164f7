// Calls of the kernels of an update. A step whose gradients overflowed changes nothing.
#include <cmath>

#include "kernels/host/call_groups.hpp"
#include "kernels/math/gradient_norm.hpp"
#include "kernels/math/layerwise.hpp"
#include "kernels/math/optimizers.hpp"
#include "kernels/math/step_state.hpp"

namespace rehearse {

namespace {

Weights weights(CallOperands& x, const StepState& state) {
  return {x[0], {}, x[1], static_cast<float>(state.gradient_factor)};
}

std::uint64_t number(const StepState& state) { return static_cast<std::uint64_t>(state.taken) + 1; }

void run_gradient_factor(CallOperands& x) {
  StepState& state = x.as<StepState>(1)[0];
  const double norm = std::sqrt(static_cast<double>(x[0][0])) / state.loss_scale;
  const float clip = state.finite != 0 ? clip_factor(norm, x.number(0)) : 1.0F;
  state.gradient_factor = static_cast<double>(clip) / state.loss_scale;
}

void run_count_step(StepState& state) {
  if (state.finite != 0)
    ++state.taken;
  else
    ++state.skipped;
}

LayerSquares squares(CallOperands& x, std::size_t operand) {
  const std::span<const double> sums = x.as<double>(operand);
  return {sums[0], sums[1]};
}

void store(const LayerSquares& squares, std::span<double> sums) {
  sums[0] = squares.weights;
  sums[1] = squares.other;
}

void run_lars(CallOperands& x, const StepState& state) {
  const Lars lars{.rate = x.real(0), .momentum = x.real(1), .trust = x.real(2)};
  lars_step(lars, weights(x, state), x[2], lars_ratio(lars, squares(x, 3)));
}

void run_lamb_update(CallOperands& x, const StepState& state) {
  const Lamb lamb{.beta1 = x.real(0), .beta2 = x.real(1), .epsilon = x.real(2)};
  lamb_update(lamb, weights(x, state), {x[2], x[3]}, number(state), x[5]);
}

void run_optimizer(Kernel kernel, CallOperands& x) {
  const std::size_t last = entry_of(kernel).operands.size() - 1;
  const bool before_last = kernel == Kernel::lars_squares || kernel == Kernel::lamb_update;
  const StepState& state = x.as<StepState>(before_last ? last - 1 : last)[0];
  if (state.finite == 0) return;
  switch (kernel) {
    case Kernel::sgd:
      return sgd_step({.rate = x.real(0)}, weights(x, state));
    case Kernel::momentum:
      return momentum_step({.rate = x.real(0), .momentum = x.real(1)}, weights(x, state), x[2]);
    case Kernel::adam:
      return adam_step(
          {.rate = x.real(0), .beta1 = x.real(1), .beta2 = x.real(2), .epsilon = x.real(3)},
          weights(x, state), {x[2], x[3]}, number(state));
    case Kernel::lars_squares:
      return store(lars_squares(weights(x, state)), x.as<double>(3));
    case Kernel::lars:
      return run_lars(x, state);
    case Kernel::lamb_update:
      return run_lamb_update(x, state);
    case Kernel::lamb_apply:
      return lamb_apply({.rate = x.real(0)}, weights(x, state), x[1], lamb_ratio(squares(x, 2)));
    default:
      ASSERT(false);
  }
}

}  // namespace

void run_update(Kernel kernel, CallOperands& x) {
  switch (kernel) {
    case Kernel::add_squares:
      x.as<double>(1)[0] += x.number(0) * sum_of_squares(x[0]);
      return;
    case Kernel::round_sum:
      x[1][0] = static_cast<float>(x.as<double>(0)[0]);
      return;
    case Kernel::gradient_factor:
      return run_gradient_factor(x);
    case Kernel::count_step:
      return run_count_step(x.as<StepState>(0)[0]);
    case Kernel::layer_squares:
      return store({sum_of_squares(x[0]), sum_of_squares(x[1])}, x.as<double>(2));
    default:
      return run_optimizer(kernel, x);
  }
}

}  // namespace rehearse
