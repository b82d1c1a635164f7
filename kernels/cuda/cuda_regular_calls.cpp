// Calls of dropout, loss scaling and 8-bit codes on a GPU, as kernels/host/regular_calls.cpp makes
// them on the host.
#include "kernels/cuda/cuda_call_operands.hpp"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/step_state.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

void start_adjust(const DeviceOperands& x) {
  const LossScale how{.growth = x.number(0),
                      .backoff = x.number(1),
                      .least = x.number(2),
                      .largest = x.number(3),
                      .growth_interval = static_cast<std::uint32_t>(x.whole(0))};
  adjust_loss_scale(x.stream(), how, x.as<StepState>(0).data());
}

const float* code_scale(const DeviceOperands& x) {
  float* const scale = x.take<float>(1).data();
  shared_int8_scale(x.stream(), x[1].data(), x.whole(0), scale);
  return scale;
}

}  // namespace

void start_regular_call(const DeviceOperands& x) {
  switch (x.call().kernel) {
    case Kernel::find_not_finite:
      return find_not_finite(x.stream(), std::span<const float>{x[0]},
                             x.as<std::uint32_t>(1).data());
    case Kernel::take_finite:
      return take_finite(x.stream(), x[0].data(), x.as<StepState>(1).data());
    case Kernel::adjust_loss_scale:
      return start_adjust(x);
    case Kernel::scale_loss:
      return scale_loss(x.stream(), x.as<double>(0).data(), x.as<StepState>(1).data(),
                        x.as<double>(2).data());
    case Kernel::int8_largest:
      return largest_magnitude(x.stream(), x[0], x[1].data());
    case Kernel::int8_quantize:
      return quantize(x.stream(), x[0], code_scale(x), x.as<std::int8_t>(2));
    case Kernel::int8_dequantize:
      return dequantize(x.stream(), std::span<const std::int8_t>{x.as<std::int8_t>(0)},
                        code_scale(x), x[2]);
    case Kernel::dropout:
      return dropout(
          x.stream(), x[0], x.as<StepState>(1).data(),
          {.probability = x.number(0), .words = {x.whole(0), x.whole(1)}, .first = x.whole(2)},
          {x.whole(3), x.whole(4)}, x[2]);
    default:
      throw DeviceError("kernel '" + std::string{entry_of(x.call().kernel).name} +
                        "' has no CUDA form yet; run it with --backend host");
  }
}

}  // namespace rehearse
