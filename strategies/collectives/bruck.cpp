// Bruck's all-gather: log2 n exchanges for any number n of ranks, each of all that a rank has.
//
//   rank     0          1          2          3          4
//   step 0   0 1        1 2        2 3        3 4        4 0         from p+1: one block
//   step 1   0 1 2 3    1 2 3 4    2 3 4 0    3 4 0 1    4 0 1 2     from p+2: two
//   step 2   0 1 2 3 4  1 2 3 4 0  2 3 4 0 1  3 4 0 1 2  4 0 1 2 3   from p+4: what is missing
//   rotated  0 1 2 3 4  0 1 2 3 4  …
//
//   T = ceil(log2 n) · alpha + (n-1)/n · S/beta
//
// A rank keeps the blocks in scratch memory from its own one on, so that what it sends, its first
// 2^k blocks, is in one piece for any n; at the end it rotates them into their places. The copies
// there and back cross no link: they cost a protocol's overhead at most. What goes farthest is the
// largest; PAT (pat.cpp) turns that round.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in
// multiport message-passing systems, IEEE Transactions on Parallel and Distributed Systems 8
// (1997).
#include <algorithm>
#include <bit>
#include <utility>

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

namespace {

/// Blocks of the data, round and round, and where a rank's scratch has them.
class RoundBlocks {
 public:
  RoundBlocks(const CollectiveBuffers& buffers, std::size_t ranks)
      : cut_(buffers.data, ranks), data_{buffers.data}, scratch_{buffers.scratch} {}

  Slice operator[](std::size_t block) const { return cut_[block]; }
  Bytes size() const { return data_.size; }

  /// `count` blocks from `first` on, in the scratch of rank `at`.
  Slice rotated(std::size_t at, std::size_t first, std::size_t count) const {
    Bytes place = begin(first) - begin(at);
    if (place < Bytes{0}) place += data_.size;
    return {scratch_, data_.offset + place, length(first, count)};
  }
  /// The same in the data; they do not go round.
  Slice straight(std::size_t first, std::size_t count) const {
    return {data_.buffer, data_.offset + begin(first), length(first, count)};
  }
  Bytes longest(std::size_t count) const {
    Bytes most;
    for (std::size_t first = 0; first < cut_.size(); ++first)
      most = std::max(most, length(first, count));
    return most;
  }

 private:
  Bytes begin(std::size_t block) const {  // one after the last: all of them
    return block == cut_.size() ? data_.size : cut_[block].offset - data_.offset;
  }
  Bytes length(std::size_t first, std::size_t count) const {
    const std::size_t n = cut_.size(), end = first + count;
    return end <= n ? begin(end) - begin(first) : data_.size - begin(first) + begin(end - n);
  }

  Cut cut_;
  Slice data_;
  Buffer scratch_;
};

/// A stage for each exchange, one before them and two after them.
struct Bruck {
  std::size_t ranks = 0, exchanges = 0;
  HopId hop(std::size_t stage, std::size_t p) const {
    return static_cast<HopId>(stage * ranks + p);
  }

  void emit(Emission& out, const CollectiveBuffers& buffers) const {
    if (ranks < 2) return;
    const RoundBlocks blocks(buffers, ranks);
    const auto stage = [&](std::size_t number, std::string_view text, Bytes longest,
                           auto&& source_and_target) {
      const std::uint32_t name = out.name(text);
      std::vector<OpId> last(out.kept().size(), no_op);
      for (std::size_t p = 0; p < ranks; ++p) {
        const HopId way = hop(number, p);
        if (!out.keeps(way)) continue;
        const auto [source, target] = source_and_target(p);
        last[out.place(way)] =
            out.send(way, {source, target, Combine::overwrite, longest}, out.ready_for(way), name,
                     static_cast<std::uint32_t>(number));
      }
      out.end_stage(last);
    };
    stage(0, "bruck_copy", blocks.longest(1), [&](std::size_t p) {
      return std::pair{blocks[p], blocks.rotated(p, p, 1)};
    });
    for (std::size_t k = 0; k < exchanges; ++k) {
      const std::size_t distance = std::size_t{1} << k;
      const std::size_t count = std::min(distance, ranks - distance);
      stage(1 + k, "bruck_all_gather", blocks.longest(count), [&](std::size_t p) {
        const std::size_t to = (p + ranks - distance) % ranks;
        return std::pair{blocks.rotated(p, p, count), blocks.rotated(to, p, count)};
      });
    }
    stage(1 + exchanges, "bruck_rotation", blocks.size(), [&](std::size_t p) {
      return std::pair{blocks.rotated(p, p, ranks - p), blocks.straight(p, ranks - p)};
    });
    stage(2 + exchanges, "bruck_rotation", blocks.size(), [&](std::size_t p) {
      return std::pair{blocks.rotated(p, 0, p), blocks.straight(0, p)};
    });
  }
};

CollectivePlan plan_bruck(const CollectiveShape& shape, Routing&) {
  CollectivePlan plan;
  const std::size_t n = shape.group.size();
  const Bruck bruck{n, static_cast<std::size_t>(std::bit_width(n - 1))};
  for (std::size_t stage = 0; n > 1 && stage < bruck.exchanges + 3; ++stage)
    for (std::size_t p = 0; p < n; ++p) {
      const bool exchanges = stage > 0 && stage <= bruck.exchanges;
      const std::size_t distance = exchanges ? std::size_t{1} << (stage - 1) : 0;
      plan.pattern.add(
          {.connection = {.source = shape.group[p], .target = shape.group[(p + n - distance) % n]},
           .tag = static_cast<std::uint32_t>(stage),
           .stage = static_cast<std::uint8_t>(stage)});
    }
  plan.emit = [bruck](Emission& out, const CollectiveBuffers& buffers, std::size_t, std::size_t) {
    bruck.emit(out, buffers);
  };
  return plan;
}

Refusal bruck_refusal(const CollectiveShape& shape, const Topology&) {
  return refuse_all_but({CollectiveKind::all_gather}, shape.kind);
}

}  // namespace

Algorithm by_bruck() {
  return {"bruck", "all-gather in log2 steps for any number of ranks, the largest the farthest",
          bruck_refusal, plan_bruck};
}

}  // namespace rehearse
