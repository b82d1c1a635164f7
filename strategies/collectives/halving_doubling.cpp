// Recursive halving and doubling: exchange halves with partners at distance 1, 2, 4, …, then back.
//
//   step 0   0⇄1  2⇄3  4⇄5  6⇄7    S/2 bytes each way      n = 2^k ranks:
//   step 1   0⇄2  1⇄3  4⇄6  5⇄7    S/4                      T = 2 k alpha + 2 (n-1)/n · S/beta
//   step 2   0⇄4  1⇄5  2⇄6  3⇄7    S/8, then all of it in reverse, doubling
//
// The largest pieces go to the nearest partner, so a node's own links carry most of the bytes.
// Ranks beyond a power of two hand their data to a partner first and get the result back:
// + 2 (alpha + S/beta). Rabenseifner (2004); Thakur, Rabenseifner and Gropp (2005).
#include "strategies/collectives/halving_doubling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

namespace {

/// Chunks [begin, begin + count) of the data, which are cut into as many as there are core ranks.
struct Span {
  std::size_t begin, count;
};

Slice slice_of(const Cut& cut, Span span) {
  const Slice first = cut[span.begin], last = cut[span.begin + span.count - 1];
  return {first.buffer, first.offset, last.offset + last.size - first.offset};
}

// What position p still works on when partners at `steps` distances are done. Without a final owner
// to obey (all-reduce) distance 1 comes first and halves the whole; a reduce-scatter must end with
// everyone's own chunk, so there the farthest partner comes first.
Span working_span(std::size_t p, std::size_t levels, std::size_t steps, bool nearest_first) {
  Span span{0, std::size_t{1} << levels};
  for (std::size_t s = 0; s < steps; ++s) {
    const std::size_t level = nearest_first ? s : levels - 1 - s;
    span.count /= 2;
    if (p >> level & 1) span.begin += span.count;
  }
  return span;
}

class HalvingExchange {
 public:
  HalvingExchange(Emission& out, std::span<const Halving> all, std::span<const Slice> data,
                  HalvingPart part)
      : out_{out}, all_{all}, data_{data}, part_{part} {
    ASSERT(data.size() == all.size());
  }

  void run() {
    if (part_ == HalvingPart::all_reduce) hand(true);
    std::size_t levels = 0;
    for (const Halving& halving : all_) levels = std::max(levels, halving.levels);
    if (part_ != HalvingPart::all_gather)
      for (std::size_t s = 0; s < levels; ++s) step(s, true);
    if (part_ != HalvingPart::reduce_scatter)
      for (std::size_t s = levels; s-- > 0;) step(s, false);
    if (part_ == HalvingPart::all_reduce) hand(false);
  }

 private:
  // Every exchange is a stage of its own: both partners need what they received before.
  void step(std::size_t s, bool halving_now) {
    const std::uint32_t name = out_.name(halving_now ? "halving" : "doubling");
    const Bytes longest_data = longest_of(data_);
    std::vector<OpId> last(out_.kept().size(), no_op);
    for (std::size_t h = 0; h < all_.size(); ++h) {
      const Halving& halving = all_[h];
      const std::size_t levels = halving.levels;
      if (s >= levels) continue;
      const bool nearest_first = part_ == HalvingPart::all_reduce;
      const std::size_t level = nearest_first ? s : levels - 1 - s;
      const Cut cut(data_[h], halving.core());
      for (std::size_t p = 0; p < halving.core(); ++p) {
        const HopId hop = (halving_now ? halving.halve : halving.redouble)[level][p];
        if (!out_.keeps(hop)) continue;
        const std::size_t partner = p ^ (std::size_t{1} << level);
        const Span span = working_span(halving_now ? partner : p, levels, s + 1, nearest_first);
        const Slice piece = slice_of(cut, span);
        last[out_.place(hop)] =
            out_.send(hop,
                      {piece, piece, halving_now ? Combine::sum : Combine::overwrite,
                       longest(Cut({{}, {}, longest_data}, cut.size()), span.count)},
                      out_.ready_for(hop), name, static_cast<std::uint32_t>(s));
      }
    }
    out_.end_stage(last);
  }

  void hand(bool over) {
    const std::uint32_t name = out_.name(over ? "hand_over" : "hand_back");
    std::vector<OpId> last(out_.kept().size(), no_op);
    for (std::size_t h = 0; h < all_.size(); ++h) {
      for (const HopId hop : over ? all_[h].hand_over : all_[h].hand_back) {
        if (!out_.keeps(hop)) continue;
        last[out_.place(hop)] = out_.send(
            hop, {data_[h], data_[h], over ? Combine::sum : Combine::overwrite, longest_of(data_)},
            out_.ready_for(hop), name, 0);
      }
    }
    out_.end_stage(last);
  }

  static Bytes longest_of(std::span<const Slice> slices) {
    Bytes most;
    for (const Slice& slice : slices) most = std::max(most, slice.size);
    return most;
  }

  static Bytes longest(const Cut& cut, std::size_t chunks) {
    Bytes most;
    for (std::size_t begin = 0; begin < cut.size(); begin += chunks)
      most = std::max(most, slice_of(cut, {begin, chunks}).size);
    return most;
  }

  Emission& out_;
  std::span<const Halving> all_;
  std::span<const Slice> data_;
  HalvingPart part_;
};

}  // namespace

std::uint8_t declare_halving(Pattern& pattern, Halving& halving, HalvingPart part, LaneTag on,
                             const Connection& like) {
  const std::size_t n = halving.ranks.size();
  const std::size_t core = std::bit_floor(n);
  halving.levels = static_cast<std::size_t>(std::bit_width(core)) - 1;
  halving.halve.resize(halving.levels);
  halving.redouble.resize(halving.levels);
  std::uint8_t stage = on.stage;
  const auto add = [&](std::size_t source, std::size_t target) {
    Connection connection = like;
    connection.source = halving.ranks[source];
    connection.target = halving.ranks[target];
    return pattern.add({std::move(connection), on.lane, on.tag * 256 + stage, on.twin, stage});
  };
  const auto exchange = [&](std::vector<HopId>& hops, std::size_t level) {
    for (std::size_t p = 0; p < core; ++p) hops.push_back(add(p, p ^ (std::size_t{1} << level)));
    ++stage;
  };
  const bool both = part == HalvingPart::all_reduce;
  const auto level_of = [&](std::size_t s) { return both ? s : halving.levels - 1 - s; };
  if (both && core < n) {
    for (std::size_t extra = core; extra < n; ++extra)
      halving.hand_over.push_back(add(extra, extra - core));
    ++stage;
  }
  if (part != HalvingPart::all_gather)
    for (std::size_t s = 0; s < halving.levels; ++s)
      exchange(halving.halve[level_of(s)], level_of(s));
  if (part != HalvingPart::reduce_scatter)
    for (std::size_t s = halving.levels; s-- > 0;)
      exchange(halving.redouble[level_of(s)], level_of(s));
  if (both && core < n) {
    for (std::size_t extra = core; extra < n; ++extra)
      halving.hand_back.push_back(add(extra - core, extra));
    ++stage;
  }
  return stage;
}

void emit_halving(Emission& out, std::span<const Halving> all, std::span<const Slice> data,
                  HalvingPart part) {
  HalvingExchange(out, all, data, part).run();
}

namespace {

CollectivePlan plan_halving(const CollectiveShape& shape, Routing&) {
  CollectivePlan plan;
  Halving halving{.ranks = shape.group};
  const HalvingPart part = shape.kind == CollectiveKind::reduce_scatter
                               ? HalvingPart::reduce_scatter
                           : shape.kind == CollectiveKind::all_gather ? HalvingPart::all_gather
                                                                      : HalvingPart::all_reduce;
  declare_halving(plan.pattern, halving, part, {}, Connection{});
  plan.emit = [halving = std::move(halving), part](Emission& out, const CollectiveBuffers& buffers,
                                                   std::size_t, std::size_t) {
    emit_halving(out, {&halving, 1}, {&buffers.data, 1}, part);
  };
  return plan;
}

Refusal halving_refusal(const CollectiveShape& shape, const Topology&) {
  if (shape.kind == CollectiveKind::all_reduce) return std::nullopt;
  if (const auto refusal =
          refuse_all_but({CollectiveKind::reduce_scatter, CollectiveKind::all_gather}, shape.kind))
    return refusal;
  if (!std::has_single_bit(shape.group.size()))
    return fmt::format("for {} it needs a power of two ranks, not {}", to_string(shape.kind),
                       shape.group.size());
  return std::nullopt;
}

}  // namespace

Algorithm by_halving_doubling() {
  return {"halving_doubling", "exchange with partners at distance 1, 2, 4, …; log2 steps",
          halving_refusal, plan_halving};
}

}  // namespace rehearse
