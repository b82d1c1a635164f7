// The names of kernels and what they do to their operands, in the order of the
// enum.
#include "sim/program/kernel_list.hpp"

#include <algorithm>
#include <array>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

constexpr std::array entries{
    KernelEntry{"gemm", "rrm"},
    KernelEntry{"add", "rrw"},
    KernelEntry{"add_into", "rm"},
    KernelEntry{"scale", "rw"},
    KernelEntry{"copy", "rw"},
    KernelEntry{"zero", "w"},
    KernelEntry{"add_bias", "rrw"},
    KernelEntry{"add_column_sums", "rm"},
    KernelEntry{"relu", "rw"},
    KernelEntry{"relu_backward", "rrw"},
    KernelEntry{"bias_gelu", "rrw"},
    KernelEntry{"bias_gelu_backward", "rrrw"},
    KernelEntry{"swiglu", "rrw"},
    KernelEntry{"swiglu_backward", "rrrww"},
    KernelEntry{"layer_norm", "rrrwww"},
    KernelEntry{"layer_norm_backward", "rrrrrw"},
    KernelEntry{"layer_norm_weights", "rrrrmm"},
    KernelEntry{"rms_norm", "rrww"},
    KernelEntry{"rms_norm_backward", "rrrrw"},
    KernelEntry{"rms_norm_weights", "rrrm"},
    KernelEntry{"attention", "rrrww"},
    KernelEntry{"attention_backward", "rrrrrrwww"},
    KernelEntry{"attention_pairs", "rrw"},
    KernelEntry{"attention_over_keys", "rrw"},
    KernelEntry{"attention_over_queries", "rrw"},
    KernelEntry{"attention_softmax", "rw"},
    KernelEntry{"attention_softmax_backward", "rrw"},
    KernelEntry{"embedding", "rrw"},
    KernelEntry{"embedding_backward", "rrm"},
    KernelEntry{"add_positions", "rm"},
    KernelEntry{"positions_backward", "rm"},
    KernelEntry{"rotate", "rw"},
    KernelEntry{"class_loss", "rrw"},
    KernelEntry{"class_loss_backward", "rrrw"},
    KernelEntry{"vocabulary_max", "rw"},
    KernelEntry{"vocabulary_sums", "rrrww"},
    KernelEntry{"vocabulary_softmax", "rrrrww"},
    KernelEntry{"vocabulary_gradient", "rrrw"},
    KernelEntry{"add_squares", "rm"},
    KernelEntry{"round_sum", "rw"},
    KernelEntry{"gradient_factor", "rm"},
    KernelEntry{"count_step", "m"},
    KernelEntry{"sgd", "mrr"},
    KernelEntry{"momentum", "mrmr"},
    KernelEntry{"adam", "mrmmr"},
    KernelEntry{"lars_squares", "rrrw"},
    KernelEntry{"lars", "mrmrr"},
    KernelEntry{"lamb_update", "rrmmrw"},
    KernelEntry{"layer_squares", "rrw"},
    KernelEntry{"lamb_apply", "mrrr"},
    KernelEntry{"dgc_clip", "m"},
    KernelEntry{"dgc_accumulate", "rmm"},
    KernelEntry{"dgc_sample", "rrw"},
    KernelEntry{"dgc_sort", "rw"},
    KernelEntry{"dgc_select", "mmrw"},
    KernelEntry{"dgc_add", "rm"},
    KernelEntry{"dropout", "rrw"},
    KernelEntry{"find_not_finite", "rm"},
    KernelEntry{"take_finite", "rm"},
    KernelEntry{"adjust_loss_scale", "m"},
    KernelEntry{"scale_loss", "rrw"},
    KernelEntry{"int8_largest", "rw"},
    KernelEntry{"int8_quantize", "rrw"},
    KernelEntry{"int8_dequantize", "rrw"},
};
static_assert(entries.size() == static_cast<std::size_t>(Kernel::int8_dequantize) + 1);

}  // namespace

const KernelEntry& entry_of(Kernel kernel) {
  ASSERT(static_cast<std::size_t>(kernel) < entries.size());
  return entries[static_cast<std::size_t>(kernel)];
}

std::optional<Kernel> find_kernel(std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const KernelEntry& entry) { return entry.name == name; });
  if (found == entries.end()) return std::nullopt;
  return static_cast<Kernel>(found - entries.begin());
}

std::vector<std::string_view> kernel_names() {
  std::vector<std::string_view> names;
  for (const KernelEntry& entry : entries) names.push_back(entry.name);
  return names;
}

bool writes_operand(Kernel kernel, std::size_t i) { return entry_of(kernel).operands[i] != 'r'; }

}  // namespace rehearse
