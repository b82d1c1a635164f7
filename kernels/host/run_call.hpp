// Runs the kernels that the ops of a Program name (sim/program/kernel_list.hpp) by the CPU
// references.
#pragma once

#include <cstddef>
#include <span>

#include "sim/program/program.hpp"

namespace rehearse {

/// One kernel on its operands, each as many bytes as its slice. Operands that are stored in 16 bits
/// are widened to fp32 before, and what was written is rounded after.
void run_call(const KernelCall& call, std::span<const std::span<std::byte>> operands);

/// All kernels of a compute op; `operands` are the bytes of its accesses, in their order.
void run_calls(std::span<const KernelCall> calls, std::span<const std::span<std::byte>> operands);

}  // namespace rehearse
