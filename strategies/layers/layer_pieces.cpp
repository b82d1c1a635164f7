// The words for kinds of activations.
#include "strategies/layers/layer_pieces.hpp"

#include <string_view>

namespace rehearse {

std::string_view to_string(ActivationKind kind) {
  constexpr std::string_view words[] = {"input", "attention", "mlp", "norm", "loss"};
  return words[static_cast<std::size_t>(kind)];
}

}  // namespace rehearse
