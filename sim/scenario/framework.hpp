// Training frameworks as small sets of choices: which kernels they fuse, what they let run side by
// side, what a launch costs their host. A scenario names one; with none every kernel is fused and
// the host is never waited for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/base/units.hpp"

namespace rehearse {

/// What measured steps take, in predicted ones: one in ten less than `low`, one in ten more than
/// `high`.
struct StepBand {
  double low = 1, high = 1;
  friend bool operator==(const StepBand&, const StepBand&) = default;
};

struct Framework {
  std::string_view name;
  // Of the host, for every kernel and exchange it launches: the GPU waits where that takes longer.
  Time launch;
  // Of the rate at which its replicas could exchange gradients and parameters: what it reaches
  // where nothing computes beside them.
  double exchange_share = 1;
  // What its update moves of memory for each parameter beside a fused optimizer: chains of
  // element-wise kernels over weights, gradients and moments, clipping, zeroing, statistics. Of SGD
  // in fp32 as much of it as can be counted (strategies/layers/optimizer.cpp).
  double update_bytes = 0;
  // How far its replicas' kernels differ, as a coefficient of variation: a step takes as long as
  // the slowest of them. Zero where the other constants were fitted to runs of many devices.
  double spread = 0;
  // Operators of its update for each tensor of parameters, with weights and gradients in fp32, and
  // in 16 bits; 0: so few in all that no host is waited for.
  std::uint8_t update_operators = 0, update_operators_in_16_bits = 0;
  // The host waits for every sum of gradients. When the last one is there the device has nothing to
  // do, and the update's operators are launched to it one by one; else they were long before.
  bool awaits_sums = false;
  /// Kernels of its own for what else is a chain of element-wise ones.
  struct Fused {
    bool norm = true, softmax = true, activation = true, residual = true, rope = true;
    bool accumulation = true;  // of a weight's gradient, by the product that makes it
    friend bool operator==(const Fused&, const Fused&) = default;
  } fused;
  bool overlaps_tensor_ranks = true;  // their exchanges with products of the backward pass
  /// Of flash attention: 1, 2, or 3 for kernels of the device's own generation (FA 3, cuDNN).
  std::uint8_t flash = 3;
  StepBand band;  // of its published steps
  // What it does unless it is told otherwise.
  bool overlap_grad_reduce = false, overlap_param_gather = false;
  bool fp32_gradients = false;  // of steps in bf16: accumulated and reduced
  bool biases = true;           // in models of the gpt type
  double dropout = 0;           // likewise
  // ZeRO's first stage sums gradients whole on every replica, in fp32, and each keeps its part.
  bool sums_whole_gradients = false;
  // Tensor ranks that hold the same activations send a part each to the next stage, which gathers
  // them (SC'21, section 4.1).
  bool scatters_messages = false;
  // Stages are cut by modules: embedding, last norm and head count as a block each.
  bool counts_ends = false;
};

/// The first is none of them.
inline constexpr std::size_t framework_count = 19;
std::span<const Framework, framework_count> frameworks();
/// Their names, in the same order.
extern const std::array<std::string_view, framework_count> framework_words;
/// Null when it is not in the table.
const Framework* find_framework(std::string_view name);

}  // namespace rehearse
