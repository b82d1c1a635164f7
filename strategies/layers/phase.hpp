// What the ops of a training step are for.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

/// What an op of a step is for: reports sort by it, traces name it.
enum class Phase : std::uint8_t {
  forward,
  recompute,
  backward,        // with its weights
  backward_input,  // the two halves of zero-bubble schedules
  backward_weight,
  gradients,   // reduction over data-parallel ranks
  parameters,  // gathered for ZeRO, broadcast at the start
  optimizer,
  hand_over,  // activations and their gradients between stages
};

std::string_view to_string(Phase);

}  // namespace rehearse
