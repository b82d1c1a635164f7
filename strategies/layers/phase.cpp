// The words for phases, as reports and traces show them.
#include "strategies/layers/phase.hpp"

#include <cstddef>

namespace rehearse {

std::string_view to_string(Phase phase) {
  constexpr std::string_view words[] = {"forward",        "recompute",       "backward",
                                        "backward_input", "backward_weight", "gradients",
                                        "parameters",     "optimizer",       "hand_over"};
  return words[static_cast<std::size_t>(phase)];
}

}  // namespace rehearse
