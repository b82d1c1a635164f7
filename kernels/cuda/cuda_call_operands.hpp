// The operands of one kernel call on a device, as the numbers that the kernels take: the GPU's form
// of kernels/host/call_operands.hpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/cuda/cuda_run_call.hpp"
#include "kernels/math/call_arguments.hpp"

namespace rehearse {

/// Widens what is stored in 16 bits when it is made; store() rounds what the kernel wrote.
class DeviceOperands : public CallArguments {
 public:
  DeviceOperands(const CallPlace& place, const KernelCall& call,
                 std::span<const std::span<std::byte>> bytes);
  void store() const;

  CUstream_st* stream() const { return place_.stream; }
  std::span<float> operator[](std::size_t i) const {
    return is_narrow(i) ? widened_[i] : as<float>(i);
  }
  /// Scratch memory, until the call has ended.
  template <class Number>
  std::span<Number> take(std::size_t numbers) const {
    return {reinterpret_cast<Number*>(place_.scratch(numbers * sizeof(Number))), numbers};
  }

 private:
  const CallPlace& place_;
  std::vector<std::span<float>> widened_;
};

/// Embeddings, positions and losses.
void start_end_call(const DeviceOperands& operands);
/// Norms of gradients, optimizers, sparse gradients.
void start_update_call(const DeviceOperands& operands);
/// Dropout, loss scaling, 8-bit codes.
void start_regular_call(const DeviceOperands& operands);

}  // namespace rehearse
