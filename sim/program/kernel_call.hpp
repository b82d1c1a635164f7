// What a compute op does on a real device: kernels by name, with their sizes and numbers. Their
// operands are the op's accesses. The simulators never look at it; the list of kernels and the
// order of their operands is sim/program/kernel_list.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/precision.hpp"

namespace rehearse {

enum class Kernel : std::uint16_t;  // the list: sim/program/kernel_list.hpp

/// One kernel. An op may run several, one after the other: a fused kernel is its parts, and each
/// takes the next `operands` of the op's accesses, in the order that the list gives.
struct KernelCall {
  Kernel kernel{};
  std::uint8_t operands = 0;
  Precision narrow = Precision::fp32;  // how those of `narrow_operands` are stored
  std::uint16_t narrow_operands = 0;   // bit i: operand i is; computed with in fp32 all the same
  std::array<std::int64_t, 8> sizes{};
  std::array<double, 4> numbers{};
  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

}  // namespace rehearse
