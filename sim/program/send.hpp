// For programs written by hand: a message as one call.
#pragma once

#include <span>

#include "sim/program/program.hpp"

namespace rehearse {

struct Message {
  Rank source{}, target{};
  Slice slice;  // at the same place of both
  Combine combine = Combine::overwrite;
  Stream stream = Stream::comm;
};

/// A transfer on a connection of its own, whose links carry the slice and nothing else.
inline OpId send(Program& program, Label label, const Message& message,
                 std::span<const OpId> after) {
  const auto& [buffer, offset, size] = message.slice;
  Connection way;
  way.source = message.source;
  way.target = message.target;
  return program.add_transfer(message.stream, label,
                              {.connection = program.connect(std::move(way)),
                               .source_buffer = buffer,
                               .target_buffer = buffer,
                               .combine = message.combine,
                               .source_offset = offset,
                               .target_offset = offset,
                               .size = size,
                               .wire = size},
                              after);
}

}  // namespace rehearse
