// Numbers the streams of a Program: every (rank, stream) that has ops, from 0 on.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

/// Ranks an op occupies: the whole group of a collective, one rank otherwise.
inline std::span<const Rank> ranks_of(const Program& program, const Program::Op& op) {
  if (op.kind == WorkKind::collective) return program.collective(op).group;
  return {&op.rank, 1};
}

class StreamTable {
 public:
  explicit StreamTable(const Program& program);

  /// How many (rank, stream) pairs the program uses.
  std::size_t size() const { return size_; }
  /// The pair must be one that the program uses.
  std::uint32_t number(Rank rank, Stream stream) const {
    if (dense_.empty()) return rare_number(rank, stream);
    return dense_[column(stream) * ranks_ + index(rank)];
  }

 private:
  // Queues come right behind the streams in program order.
  std::size_t column(Stream stream) const {
    return is_queue(stream) ? index(stream) - index(Stream::queue) + in_order_ : index(stream);
  }
  std::uint32_t rare_number(Rank rank, Stream stream) const;

  static constexpr std::uint32_t unused = UINT32_MAX;
  std::size_t size_ = 0, ranks_ = 0;
  std::size_t in_order_ = 0;  // columns of streams in program order
  // A table where it is small beside the program, which is the rule; a map for odd numberings, so
  // that a file of one line that names rank 4,000,000,000 costs nothing.
  std::vector<std::uint32_t> dense_;
  std::unordered_map<std::uint64_t, std::uint32_t> sparse_;
};

}  // namespace rehearse
