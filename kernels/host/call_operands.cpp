// Between the bytes of a buffer and fp32.
#include "kernels/host/call_operands.hpp"

#include "kernels/math/number_formats.hpp"

namespace rehearse {

CallOperands::CallOperands(const KernelCall& call, std::span<const std::span<std::byte>> bytes)
    : CallArguments{call, bytes} {
  if (call.narrow_operands == 0) return;
  widened_.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!is_narrow(i)) continue;
    widened_[i].resize(bytes[i].size() / 2);
    if (entry_of(call.kernel).operands[i] == 'w') continue;
    if (call.narrow == Precision::fp16)
      cast(std::span<const Fp16>{as<Fp16>(i)}, widened_[i]);
    else
      cast(std::span<const Bf16>{as<Bf16>(i)}, widened_[i]);
  }
}

void CallOperands::store() {
  for (std::size_t i = 0; i < widened_.size(); ++i) {
    if (!is_narrow(i) || !writes_operand(call().kernel, i)) continue;
    if (call().narrow == Precision::fp16)
      cast(std::span<const float>{widened_[i]}, as<Fp16>(i));
    else
      cast(std::span<const float>{widened_[i]}, as<Bf16>(i));
  }
}

}  // namespace rehearse
