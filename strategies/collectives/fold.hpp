// Scale by roles, not by copies: which ranks of a pattern are alike, so that one stands for all.
//
//   gpu0 ▶ gpu1 ▶ gpu2 ▶ gpu3 ▶ (next node) gpu0 ▶ …      2,048 nodes, but 4 roles: the hop out of
//   └ role 0 ┘└ role 1 ┘ …       └ role 3 ──┘             gpu3 of any node is like every other's
//
// Colours of ranks, hops and links are refined until they are stable: a hop's colour tells its tag,
// the colours of its ends, of its links and of the hops it waits for; a link's, the hops that cross
// it; a rank's, its hops.
// In a stable colouring (an equitable partition) all hops of one colour begin together, get the
// same rates and end together, by induction over events; so the folded answer equals the unfolded
// one exactly. A straggler or a slow link has a colour of its own and unfolds what it touches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/paths.hpp"
#include "strategies/collectives/pattern.hpp"

namespace rehearse {

struct Fold {
  std::vector<std::uint32_t> role;  // by rank of the topology; ranks in no hop have none
  std::vector<HopId> stand_in;      // by hop: the hop kept for it, perhaps itself
  std::vector<FoldedPath> paths;    // by hop, filled for the kept ones
  std::size_t roles = 0;
  std::size_t kept = 0;
};

inline constexpr std::uint32_t no_role = UINT32_MAX;

/// Every rank for itself: the pattern as it is.
Fold no_fold(const Pattern& pattern, const Topology& topology);

/// The coarsest stable colouring that a bounded number of rounds finds; no_fold() where refinement
/// does not settle. `paths` are the pattern's, by hop.
Fold find_fold(const Pattern& pattern, const Paths& paths, const Topology& topology);

/// A Program with the pattern's hops as connections, and no ops.
Program connections_of(const Pattern& pattern);

}  // namespace rehearse
