// A pipeline schedule: which rank works on which micro-batch of which stage, in which order.
//
//   rank 0 │0F0│0F1│   │   │   │0B0    │0B1    │   PyTorch's notation: [stage][action][microbatch];
//   rank 1 │   │1F0│1F1│1B0    │1B1    │           times come later, from the engine
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

/// PyTorch's letters F, B, I, W. (The zero-bubble papers write B for what PyTorch calls I.)
enum class ActionKind : std::uint8_t { forward, backward, backward_input, backward_weight };

struct Action {
  std::uint32_t stage = 0;  // 0 … stages - 1, in the order of the layers
  ActionKind kind{};
  std::uint32_t microbatch = 0;
  friend bool operator==(const Action&, const Action&) = default;
  friend auto operator<=>(const Action&, const Action&) = default;
};

using ScheduleRow = std::vector<std::optional<Action>>;

struct Schedule {
  std::uint32_t stages = 1, microbatches = 1;
  /// By pipeline rank, in order; an empty cell is an idle step of the drawing and means nothing to
  /// the lowering.
  std::vector<ScheduleRow> ranks;
  std::vector<std::uint32_t> rank_of;  // by stage
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// 'F', 'B', 'I' or 'W'.
char letter(ActionKind);
/// "3B12"
std::string to_string(const Action&);

}  // namespace rehearse
