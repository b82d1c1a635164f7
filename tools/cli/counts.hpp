// Options that count something: at least one, and said so.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/error.hpp"

namespace rehearse {

/// The option's value, if it was given. Signed on the command line, because -3 read as an unsigned
/// number is eighteen quintillions.
inline std::optional<std::size_t> counted(std::string_view flag, std::optional<std::int64_t> number,
                                          std::int64_t most = INT64_MAX) {
  if (!number) return std::nullopt;
  if (*number < 1) throw InputError(fmt::format("{} {} must be at least 1", flag, *number));
  if (*number > most)
    throw InputError(fmt::format("{} {} must be at most {}", flag, *number, most));
  return static_cast<std::size_t>(*number);
}

}  // namespace rehearse
