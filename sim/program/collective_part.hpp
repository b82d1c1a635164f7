// A collective that a library does as a whole: what each rank of its group has of it.
#pragma once

#include <algorithm>

#include "sim/program/program.hpp"

namespace rehearse {

/// One rank's call of the library. In a Program it is an op of that rank by itself, with its inputs
/// and its place on a stream; it ends when that rank's bytes are there.
struct CollectivePart {
  OpId op{};
  std::uint32_t member = 0;  // position in the group
  Collective work;
  friend bool operator==(const CollectivePart&, const CollectivePart&) = default;
};

/// Whether it fills its result; the others work in place.
inline bool has_result(const Collective& work) {
  return work.kind == CollectiveKind::all_to_all || work.kind == CollectiveKind::send_recv;
}

/// Where a rank finds what came to it: blocks of an all-to-all stand as far apart as its own is
/// long, so the last may end beyond the collective's own slice.
inline Slice reached(const Collective& work) {
  Slice slice = work.result;
  if (work.kind != CollectiveKind::all_to_all || work.group.empty()) return slice;
  const Cut blocks{work.data, work.group.size()};
  slice.size =
      std::max(slice.size, static_cast<std::int64_t>(work.group.size()) * blocks.longest());
  return slice;
}

}  // namespace rehearse
