// Recursive halving and doubling as a building block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/collectives/emission.hpp"

namespace rehearse {

enum class HalvingPart : std::uint8_t { all_reduce, reduce_scatter, all_gather };

struct Halving {
  std::vector<Rank> ranks;
  // [k][p]: position p to its partner at distance 2^k, on the way there and on the way back; then
  // the ranks beyond the power of two, to and from the partner that works for them.
  std::vector<std::vector<HopId>> halve, redouble;
  std::vector<HopId> hand_over, hand_back;
  std::size_t levels = 0;
  std::size_t core() const { return std::size_t{1} << levels; }
};

/// Adds the hops, in as many stages as there are exchanges, and returns the stage after them. For
/// reduce_scatter and all_gather the number of ranks must be a power of two.
std::uint8_t declare_halving(Pattern& pattern, Halving& halving, HalvingPart part, LaneTag on,
                             const Connection& like);
/// `data` by group.
void emit_halving(Emission& out, std::span<const Halving> all, std::span<const Slice> data,
                  HalvingPart part);

}  // namespace rehearse
