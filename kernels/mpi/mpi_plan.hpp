// Who must be told what when ranks are processes: the edges of a Program, split into those that a
// process sees by itself and those that need a word from another.
//
//   rank 0  ──[send a→b]──[next]──▶     `next` goes on when the bytes have left, if nothing can
//                  ╲                     tell the difference; else when b says that they are there
//   rank 1          ╲─▶[sum]──▶          whoever needs the bytes here sees them arrive
//   rank 2              ╲┄┄▶[go]──▶      whoever waits elsewhere is told by b
#pragma once

#include <span>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

struct MpiPlan {
  /// The program must be without collectives, unfolded, and without switches that add or copy
  /// (InputError).
  explicit MpiPlan(const Program& program);

  /// The ops that name op `id`.
  std::span<const OpId> next(OpId id) const {
    const std::size_t begin = next_begin[index(id)], end = next_begin[index(id) + 1];
    return std::span{next_ops}.subspan(begin, end - begin);
  }
  /// Where the end of an op is seen first: at the target of a transfer.
  Rank seen_at(const Program& program, OpId id) const;

  std::vector<std::uint32_t> next_begin;
  std::vector<OpId> next_ops;
  std::vector<OpId> stream_next;  // the op behind it on its stream; no_op: none, or a queue
  std::vector<std::uint32_t> waits;
  bool frees_on_departure = false;  // streams go on when bytes have left; proven to be safe
};

}  // namespace rehearse
