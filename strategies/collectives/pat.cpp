// PAT, parallel aggregated trees: reduce-scatter and all-gather in log2 n steps for any number n of
// ranks. An all-gather goes from far to near, so that the farthest exchange carries one block:
//
//   block 0   0 ───────────────▶ 4                   d = 4: one block from every rank
//             0 ──────▶ 2        4 ──────▶ 6         d = 2: two
//             0 ─▶ 1    2 ─▶ 3   4 ─▶ 5    6 ─▶ 7    d = 1: four
//
// Every block has such a tree, moved on to its owner (block 1: 1 ▶ 5, …); ranks beyond the last are
// left out of it. What a rank sends for all trees at one distance is aggregated into messages of at
// most A blocks, as many as find room in a buffer of bounded length:
//
//   T = sum over d of ceil(m/A) · alpha + m · S/(n beta),   m = ceil((n-d) / 2d) blocks at d
//     = (log2 A + n/A - 1) · alpha + (n-1)/n · S/beta       with n and A powers of two, A < n
//
// A reduce-scatter is the same backwards, adding up. Blocks wait in scratch memory in such an order
// that every message is in one piece; the copies there and back cross no link. NCCL walks its near
// trees depth first, so that as few buffers hold what is still to be passed on; the messages are as
// many, over the same distances.
//
// Jeaugey: PAT: a new algorithm for all-gather and reduce-scatter operations at scale,
// arXiv:2506.20252 (2025); in NCCL since 2.23, for one rank on each node, in Simple only.
#include <algorithm>
#include <bit>
#include <utility>

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

namespace {

/// Of one message at most, but for a single block that is longer: NCCL's buffer of 4 MiB has eight
/// slots (NCCL_BUFFSIZE, NCCL_STEPS).
constexpr Bytes slot{4 * 1024 * 1024 / 8};

std::size_t blocks_in_a_message(Bytes block) {
  const std::int64_t fit = slot.count() / std::max<std::int64_t>(1, block.count());
  return static_cast<std::size_t>(std::max<std::int64_t>(1, fit));
}

/// The exchange over one distance in an all-gather: places [source, source + count) of a rank's
/// scratch go to [target, target + count) of the rank `distance` further on.
struct Exchange {
  std::size_t distance, source, target, count;
};

/// In place i every rank p has the block of rank p - behind[i].
struct Layout {
  std::vector<std::size_t> behind;
  std::size_t own = 0;              // the place of a rank's own block
  std::vector<Exchange> exchanges;  // far to near
};

// Who holds blocks of the ranks `behind` it sends those that anybody further on still lacks: all,
// or all but that of the farthest. Held blocks stay in one piece, the farthest last, when new ones
// come after them in the first case and before them in the second.
Layout layout_for(std::size_t n) {
  Layout layout{.behind = {0}};
  for (std::size_t distance = std::bit_ceil(n) / 2; n > 1 && distance > 0; distance /= 2) {
    std::vector<std::size_t>& behind = layout.behind;
    const bool all = behind.back() + distance < n;
    const std::size_t held = behind.size(), count = all ? held : held - 1;
    std::vector<std::size_t> fresh;
    for (std::size_t i = 0; i < count; ++i) fresh.push_back(behind[i] + distance);
    behind.insert(all ? behind.end() : behind.begin(), fresh.begin(), fresh.end());
    if (!all) {
      layout.own += count;
      for (Exchange& earlier : layout.exchanges) earlier.source += count, earlier.target += count;
    }
    layout.exchanges.push_back({distance, all ? 0 : count, all ? held : 0, count});
  }
  return layout;
}

/// A stage for each exchange, one before them and one after them.
struct Pat {
  std::size_t ranks;
  Layout layout;
  bool gathers;

  HopId hop(std::size_t stage, std::size_t p) const {
    return static_cast<HopId>(stage * ranks + p);
  }
  std::size_t block(std::size_t p, std::size_t place) const {
    return (p + ranks - layout.behind[place]) % ranks;
  }
  std::size_t target(std::size_t p, const Exchange& exchange) const {
    return (p + (gathers ? exchange.distance : ranks - exchange.distance)) % ranks;
  }
  /// In the order of time.
  const Exchange& exchange(std::size_t step) const {
    return layout.exchanges[gathers ? step : layout.exchanges.size() - 1 - step];
  }

  void declare(Pattern& pattern, std::span<const Rank> group) const {
    for (std::size_t stage = 0; stage < layout.exchanges.size() + 2; ++stage)
      for (std::size_t p = 0; p < ranks; ++p) {
        const bool copies = stage == 0 || stage > layout.exchanges.size();
        pattern.add({.connection = {.source = group[p],
                                    .target = group[copies ? p : target(p, exchange(stage - 1))],
                                    .posted = copies},
                     .tag = static_cast<std::uint32_t>(stage),
                     .stage = static_cast<std::uint8_t>(stage)});
      }
  }
};

class PatEmission {
 public:
  PatEmission(Emission& out, const Pat& pat, const CollectiveBuffers& buffers)
      : out_{out},
        pat_{pat},
        buffers_{buffers},
        blocks_(buffers.data, pat.ranks),
        longest_{blocks_.longest()},
        aggregated_{blocks_in_a_message(longest_)} {}

  void run() {
    const std::size_t steps = pat_.layout.exchanges.size();
    copy(0, true, pat_.gathers);
    for (std::size_t step = 0; step < steps; ++step) exchange(step);
    copy(steps + 1, false, !pat_.gathers);
  }

 private:
  /// Where the places of rank p's scratch begin, and the last one ends.
  std::vector<Bytes> begins_of(std::size_t p) const {
    std::vector<Bytes> begins{buffers_.data.offset};
    for (std::size_t i = 0; i < pat_.ranks; ++i)
      begins.push_back(begins.back() + blocks_[pat_.block(p, i)].size);
    return begins;
  }
  Slice aside(const std::vector<Bytes>& begins, std::size_t first, std::size_t count) const {
    return {buffers_.scratch, begins[first], begins[first + count] - begins[first]};
  }

  // Between data and scratch: a rank's own block, or every one.
  void copy(std::size_t stage, bool there, bool own_only) {
    const std::uint32_t name = out_.name("pat_copy");
    std::vector<OpId> last(out_.kept().size(), no_op);
    for (std::size_t p = 0; p < pat_.ranks; ++p) {
      const HopId hop = pat_.hop(stage, p);
      if (!out_.keeps(hop)) continue;
      std::vector<OpId> inputs = out_.ready_for(hop);
      const std::vector<Bytes> begins = begins_of(p);
      for (std::size_t i = 0; i < pat_.ranks; ++i) {
        if (own_only && i != pat_.layout.own) continue;
        const Slice block = blocks_[pat_.block(p, i)], kept = aside(begins, i, 1);
        last[out_.place(hop)] = out_.send(
            hop, {there ? block : kept, there ? kept : block, Combine::overwrite, longest_},
            std::exchange(inputs, {}), name, static_cast<std::uint32_t>(i));
      }
    }
    out_.end_stage(last);
  }

  void exchange(std::size_t step) {
    const Exchange& what = pat_.exchange(step);
    const std::size_t source = pat_.gathers ? what.source : what.target;
    const std::size_t target = pat_.gathers ? what.target : what.source;
    const std::uint32_t name = out_.name(pat_.gathers ? "pat_all_gather" : "pat_reduce_scatter");
    std::vector<OpId> last(out_.kept().size(), no_op);
    for (std::size_t p = 0; p < pat_.ranks; ++p) {
      const HopId hop = pat_.hop(1 + step, p);
      if (!out_.keeps(hop)) continue;
      std::vector<OpId> inputs = out_.ready_for(hop);
      const std::vector<Bytes> here = begins_of(p), there = begins_of(pat_.target(p, what));
      for (std::size_t sent = 0; sent < what.count; sent += aggregated_) {
        const std::size_t count = std::min(aggregated_, what.count - sent);
        last[out_.place(hop)] =
            out_.send(hop,
                      {aside(here, source + sent, count), aside(there, target + sent, count),
                       pat_.gathers ? Combine::overwrite : Combine::sum,
                       static_cast<std::int64_t>(count) * longest_},
                      std::exchange(inputs, {}), name, static_cast<std::uint32_t>(step));
      }
    }
    out_.end_stage(last);
  }

  Emission& out_;
  const Pat& pat_;
  const CollectiveBuffers& buffers_;
  Cut blocks_;
  Bytes longest_;
  std::size_t aggregated_;
};

CollectivePlan plan_pat(const CollectiveShape& shape, Routing&) {
  CollectivePlan plan;
  const std::size_t n = shape.group.size();
  Pat pat{n, layout_for(n), shape.kind == CollectiveKind::all_gather};
  if (n > 1) pat.declare(plan.pattern, shape.group);
  plan.transfers = n;
  plan.key = [n](Bytes size) { return Cut({{}, {}, size}, n).longest().count(); };
  plan.emit = [pat = std::move(pat)](Emission& out, const CollectiveBuffers& buffers, std::size_t,
                                     std::size_t) {
    if (pat.ranks > 1) PatEmission(out, pat, buffers).run();
  };
  return plan;
}

Refusal pat_refusal(const CollectiveShape& shape, const Topology&) {
  return refuse_all_but({CollectiveKind::reduce_scatter, CollectiveKind::all_gather}, shape.kind);
}

}  // namespace

Algorithm by_pat() {
  return {"pat",
          "reduce-scatter and all-gather in log2 steps for any number of ranks, the farthest the "
          "smallest",
          pat_refusal,
          plan_pat,
          true,
          "when the library takes it (NCCL from 2.23 on, one rank on each node) is not known here; "
          "ask by name"};
}

}  // namespace rehearse
