// The buffers of a Program as real memory: every rank has its own, as long as the program's slices
// reach.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

class HostMemory {
 public:
  /// Those of every rank, or of one only (where a rank is a process); all zero.
  explicit HostMemory(const Program& program, std::optional<Rank> only = std::nullopt);

  /// Makes a buffer long enough for a slice, if it is not; what it held stays. A block that a rank
  /// keeps for itself is in nobody's transfer. Of a rank whose memory is elsewhere: nothing.
  void cover(Rank rank, const Slice& slice);

  /// Empty where the program has no such buffer.
  std::span<std::byte> buffer(Rank rank, Buffer buffer);
  /// The bytes of a slice, which must be one of the program's or lie within them.
  std::span<std::byte> at(Rank rank, const Slice& slice);
  std::size_t bytes() const;  // of all buffers

 private:
  struct Room {
    Buffer buffer{};
    LargeVector<std::byte> bytes;
  };
  Room* find(Rank rank, Buffer buffer);

  std::vector<std::vector<Room>> rooms_;  // by rank, sorted by buffer
  std::optional<Rank> only_;
};

/// The ranks that a program names, from 0 on.
std::size_t rank_count(const Program& program);

}  // namespace rehearse
