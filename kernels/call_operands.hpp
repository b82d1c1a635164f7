// The operands of one kernel call as the numbers that the references take.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/rows.hpp"
#include "sim/assert.hpp"
#include "sim/kernel_list.hpp"

namespace rehearse {

/// Widens what is stored in 16 bits when it is made; store() rounds what the kernel wrote.
class CallOperands {
 public:
  CallOperands(const KernelCall& call, std::span<const std::span<std::byte>> bytes);
  void store();

  std::size_t whole(std::size_t i) const {
    ASSERT(call_.sizes[i] >= 0);
    return static_cast<std::size_t>(call_.sizes[i]);
  }
  bool flag(std::size_t i) const { return call_.sizes[i] != 0; }
  double number(std::size_t i) const { return call_.numbers[i]; }
  float real(std::size_t i) const { return static_cast<float>(call_.numbers[i]); }
  RowShape rows() const { return {whole(0), whole(1)}; }  // where sizes begin with rows and width

  std::span<float> operator[](std::size_t i) {
    return is_narrow(i) ? std::span<float>{widened_[i]} : as<float>(i);
  }
  /// An operand of other numbers than fp32: tokens, counters.
  template <class Number>
  std::span<Number> as(std::size_t i) const {
    const std::span<std::byte> bytes = bytes_[i];
    ASSERT(bytes.size() % sizeof(Number) == 0);
    ASSERT(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Number) == 0);
    return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
  }

 private:
  bool is_narrow(std::size_t i) const { return (call_.narrow_operands >> i & 1) != 0; }

  const KernelCall& call_;
  std::span<const std::span<std::byte>> bytes_;
  std::vector<std::vector<float>> widened_;  // by operand; empty if none is narrow
};

}  // namespace rehearse
