// Numbering of the streams in order of first use.
#include "sim/program/stream_table.hpp"

#include <algorithm>

namespace rehearse {

namespace {

std::uint64_t key_of(Rank rank, Stream stream) {
  return static_cast<std::uint64_t>(index(rank)) << 16 | index(stream);
}

}  // namespace

StreamTable::StreamTable(const Program& program) {
  std::size_t ranks = 0, queues = 0;
  for (const Program::Op& op : program.ops()) {
    for (const Rank rank : ranks_of(program, op)) ranks = std::max(ranks, index(rank) + 1);
    if (is_queue(op.stream))
      queues = std::max(queues, index(op.stream) - index(Stream::queue) + 1);
    else
      in_order_ = std::max(in_order_, index(op.stream) + 1);
  }
  const std::size_t streams = in_order_ + queues;
  const bool small = ranks * streams <= 65536 + 8 * program.size();
  if (small) {
    ranks_ = ranks;
    dense_.assign(ranks * streams, unused);
  }
  for (const Program::Op& op : program.ops())
    for (const Rank rank : ranks_of(program, op)) {
      if (small) {
        std::uint32_t& slot = dense_[column(op.stream) * ranks_ + index(rank)];
        if (slot == unused) slot = static_cast<std::uint32_t>(size_++);
      } else if (sparse_.emplace(key_of(rank, op.stream), size_).second) {
        ++size_;
      }
    }
}

std::uint32_t StreamTable::rare_number(Rank rank, Stream stream) const {
  return sparse_.at(key_of(rank, stream));
}

}  // namespace rehearse
