// The names of kernels and what they do to their operands, in the order of the enum.
#include "sim/kernel_list.hpp"

#include <algorithm>
#include <array>

#include "sim/assert.hpp"

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
};
static_assert(entries.size() == static_cast<std::size_t>(Kernel::attention_backward) + 1);

}  // namespace

const KernelEntry& entry_of(Kernel kernel) {
  ASSERT(static_cast<std::size_t>(kernel) < entries.size());
  return entries[static_cast<std::size_t>(kernel)];
}

std::optional<Kernel> find_kernel(std::string_view name) {
  const auto found = std::ranges::find(entries, name, &KernelEntry::name);
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
