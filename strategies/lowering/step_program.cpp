// The words for kinds of memory, as reports show them.
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

std::string_view to_string(MemoryKind kind) {
  constexpr std::string_view words[] = {"parameters", "gradients", "optimizer",
                                        "input",      "attention", "mlp",
                                        "norm",       "loss",      "buffers"};
  return words[static_cast<std::size_t>(kind)];
}

}  // namespace rehearse
