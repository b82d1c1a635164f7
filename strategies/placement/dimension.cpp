// The words for dimensions, as reports show them.
#include "strategies/placement/dimension.hpp"

namespace rehearse {

std::string_view to_string(Dimension dimension) {
  constexpr std::string_view words[] = {"tensor", "context", "expert", "data", "pipeline"};
  return words[static_cast<std::size_t>(dimension)];
}

}  // namespace rehearse
