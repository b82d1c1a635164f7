// What this machine knows of its processes, by their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

/// A letter of /proc: R runs, S sleeps, T is stopped, Z has ended …; 0 when it is not there.
char state_of(std::int64_t process);
std::vector<std::int64_t> children_of(std::int64_t process);
/// A variable that it was started with; empty when there is none, or nobody may look.
std::string started_with(std::int64_t process, std::string_view variable);

}  // namespace rehearse
