// Numbering of the queues in order of first use.
#include "sim/stream_table.hpp"

#include <algorithm>

namespace rehearse {

namespace {

std::uint64_t key_of(Rank rank, Stream stream) {
  return static_cast<std::uint64_t>(index(rank)) << 16 | index(stream);
}

}  // namespace

StreamTable::StreamTable(const Program& program) {
  std::size_t ranks = 0, streams = 0;
  for (const Program::Op& op : program.ops()) {
    for (const Rank rank : ranks_of(program, op)) ranks = std::max(ranks, index(rank) + 1);
    streams = std::max(streams, index(op.stream) + 1);
  }
  const bool small = ranks * streams <= 65536 + 8 * program.size();
  if (small) {
    ranks_ = ranks;
    dense_.assign(ranks * streams, unused);
  }
  for (const Program::Op& op : program.ops())
    for (const Rank rank : ranks_of(program, op)) {
      if (small) {
        std::uint32_t& slot = dense_[index(op.stream) * ranks_ + index(rank)];
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
