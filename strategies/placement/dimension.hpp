// The parallel dimensions of a training job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rehearse {

/// Along which parallel dimension bytes travel, for groups, streams and reports.
enum class Dimension : std::uint8_t { tensor, context, expert, data, pipeline };
inline constexpr std::size_t dimension_count = 5;

std::string_view to_string(Dimension);

}  // namespace rehearse
