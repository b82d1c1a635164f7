// Rings as building blocks: all-reduce and its two halves, and chains for broadcast and reduce.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "strategies/collectives/emission.hpp"

namespace rehearse {

/// One ring or chain: ranks in the order the data travel, and which chunk each of them owns.
struct Ring {
  std::vector<Rank> order;
  std::vector<std::uint32_t> owns;  // chunk owned by order[i]; a permutation
  HopId first{};                    // the hop of order[i] to its right is first + i
  HopId hop(std::size_t i) const { return static_cast<HopId>(index(first) + i % order.size()); }
};

/// What goes round a ring: its share of the data, where several rings split them. Rank i owns part
/// i of the data, and of that each ring takes its share, so a rank's own part stays in one piece.
struct RingData {
  Slice data;
  std::size_t share = 0, shares = 1;
};

enum class RingPart : std::uint8_t { all_reduce, reduce_scatter, all_gather };

/// Adds the hops of a closed ring (none for a single rank).
void declare_ring(Pattern& pattern, Ring& ring, LaneTag on, const Connection& like);

/// Emits the steps of all rings side by side, at most `steps` of them. `data` by ring.
void emit_ring(Emission& out, std::span<const Ring> rings, std::span<const RingData> data,
               RingPart part, std::size_t steps = std::numeric_limits<std::size_t>::max());

/// Adds the hops of an open chain, order[0] first.
void declare_chain(Pattern& pattern, Ring& chain, LaneTag on, const Connection& like);

/// Sends the chains' data along them in `chunks` pieces, at most `rounds` of those; with `sum` each
/// rank adds its own on the way, so that the last one has it all.
void emit_chain(Emission& out, std::span<const Ring> chains, std::span<const Slice> data,
                Combine combine, std::size_t chunks,
                std::size_t rounds = std::numeric_limits<std::size_t>::max());

}  // namespace rehearse
