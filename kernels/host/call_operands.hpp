// The operands of one kernel call as the numbers that the references take.
#pragma once

#include <span>
#include <vector>

#include "kernels/math/call_arguments.hpp"

namespace rehearse {

/// Widens what is stored in 16 bits when it is made; store() rounds what the kernel wrote.
class CallOperands : public CallArguments {
 public:
  CallOperands(const KernelCall& call, std::span<const std::span<std::byte>> bytes);
  void store();

  std::span<float> operator[](std::size_t i) {
    return is_narrow(i) ? std::span<float>{widened_[i]} : as<float>(i);
  }

 private:
  std::vector<std::vector<float>> widened_;  // by operand; empty if none is narrow
};

}  // namespace rehearse
