// Calls of dropout, of dynamic loss scaling, and of gradients as 8-bit codes.
//
// A mask belongs to a place of the whole model and batch, not to a rank: element i of the operand
// is number first + (i / block) stride + i % block of the whole tensor, and the stream grows with
// every step. Whoever holds which part, and however often it is computed, the same elements fall.
#include "kernels/host/call_groups.hpp"
#include "kernels/math/dropout.hpp"
#include "kernels/math/int8_gradients.hpp"
#include "kernels/math/loss_scale.hpp"
#include "kernels/math/step_state.hpp"

namespace rehearse {

namespace {

void run_dropout(CallOperands& x) {
  const StepState& state = x.as<StepState>(1)[0];
  const auto step = static_cast<std::uint64_t>(state.taken + state.skipped);
  Dropout mask{.probability = x.number(0),
               .words = {x.whole(0), x.whole(1) + dropout_streams_of_step * step},
               .first = x.whole(2)};
  const std::size_t block = x.whole(3), stride = x.whole(4);
  const std::span<float> from = x[0], to = x[2];
  ASSERT(block > 0 && from.size() % block == 0 && from.size() == to.size());
  for (std::size_t at = 0; at < from.size(); at += block, mask.first += stride)
    dropout(from.subspan(at, block), mask, to.subspan(at, block));
}

void run_take_finite(CallOperands& x) {
  StepState& state = x.as<StepState>(1)[0];
  state.finite = x[0][0] == 0 ? 1 : 0;
  state.gradient_factor = 1 / state.loss_scale;
}

void run_adjust(CallOperands& x) {
  StepState& state = x.as<StepState>(0)[0];
  const LossScale now{.scale = state.loss_scale,
                      .growth = x.number(0),
                      .backoff = x.number(1),
                      .least = x.number(2),
                      .largest = x.number(3),
                      .growth_interval = static_cast<std::uint32_t>(x.whole(0)),
                      .good_steps = static_cast<std::uint32_t>(state.good_steps)};
  const LossScale next = now.after(state.finite != 0);
  state.last_scale = now.scale;
  state.loss_scale = next.scale;
  state.good_steps = next.good_steps;
}

}  // namespace

void run_regular(Kernel kernel, CallOperands& x) {
  switch (kernel) {
    case Kernel::dropout:
      return run_dropout(x);
    case Kernel::find_not_finite:
      if (!all_finite(x[0])) x[1][0] = 1;
      return;
    case Kernel::take_finite:
      return run_take_finite(x);
    case Kernel::adjust_loss_scale:
      return run_adjust(x);
    case Kernel::scale_loss:
      x.as<double>(2)[0] = x.as<double>(0)[0] * x.as<StepState>(1)[0].loss_scale;
      return;
    case Kernel::int8_largest:
      x[1][0] = largest_magnitude(x[0]);
      return;
    case Kernel::int8_quantize:
      return quantize(x[0], shared_int8_scale(x[1][0], x.whole(0)), x.as<std::int8_t>(2));
    case Kernel::int8_dequantize:
      return dequantize(std::span<const std::int8_t>{x.as<std::int8_t>(0)},
                        shared_int8_scale(x[1][0], x.whole(0)), x[2]);
    default:
      ASSERT(false);
  }
}

}  // namespace rehearse
