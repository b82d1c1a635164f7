// How an action is written.
#include "strategies/schedules/schedule.hpp"

#include <fmt/format.h>

namespace rehearse {

char letter(ActionKind kind) { return "FBIW"[static_cast<std::size_t>(kind)]; }

std::string to_string(const Action& action) {
  return fmt::format("{}{}{}", action.stage, letter(action.kind), action.microbatch);
}

}  // namespace rehearse
