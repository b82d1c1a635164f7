// Scale by roles, not by copies: which hops of a pattern are alike, so that one stands for all.
//
//   gpu0 ▶ gpu1 ▶ gpu2 ▶ gpu3 ▶ (next node) gpu0 ▶ …      2,048 nodes, but 4 roles: the hop out of
//   └ role 0 ┘└ role 1 ┘ …       └ role 3 ──┘             gpu3 of any node is like every other's
//
// Hops get colours that tell all that their transfers' times can depend on: their part, latency and
// rate, the colours of the hops they wait for, of those before them on their lane, of what earlier
// stages did at both their ends, and of the links they share with others. Where a link may be
// short, it has a colour too, made of the hops that cross it. Colours are refined until they are
// stable; then all hops of one colour begin together, get the same rates and end together, by
// induction over events, and the folded answer equals the unfolded one exactly. A straggler or a
// slow link has a colour of its own and unfolds what it touches. (Rings that share nothing need
// less: see fold.cpp.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/paths.hpp"
#include "strategies/collectives/pattern.hpp"

namespace rehearse {

class Fold {
 public:
  /// `stand_in` by hop: the hop kept for it, perhaps itself.
  Fold(const Pattern& pattern, std::span<const HopId> stand_in);

  std::vector<FoldedPath> paths;       // by place; empty when nothing is folded
  std::vector<BytesPerSecond> limits;  // likewise: what the links that are never short allow

  std::span<const HopId> kept() const { return kept_; }
  /// The place of the hop, or of the one that stands for it, among the kept ones.
  std::uint32_t place(HopId hop) const { return place_[index(hop)]; }
  bool keeps(HopId hop) const { return kept_[place(hop)] == hop; }
  /// The hops that end or begin at a rank.
  std::span<const HopId> touching(Rank rank) const {
    if (index(rank) + 1 >= begin_.size()) return {};
    return std::span{touching_}.subspan(begin_[index(rank)],
                                        begin_[index(rank) + 1] - begin_[index(rank)]);
  }

 private:
  std::vector<HopId> kept_;
  std::vector<std::uint32_t> place_;  // by hop
  std::vector<std::uint32_t> begin_;  // by rank
  std::vector<HopId> touching_;
};

/// Every hop for itself: the pattern as it is.
Fold no_fold(const Pattern& pattern);

/// The coarsest stable colouring that a bounded number of rounds finds; no_fold() where refinement
/// does not settle. `paths` are the pattern's, by hop.
Fold find_fold(const Pattern& pattern, const Paths& paths, const Topology& topology);

/// A Program with the pattern's hops as connections, and no ops.
Program connections_of(const Pattern& pattern);

}  // namespace rehearse
