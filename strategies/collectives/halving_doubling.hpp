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
  // hops[k][p]: position p to its partner at distance 2^k; then the ranks beyond the power of two,
  // to and from the partner that works for them.
  std::vector<std::vector<HopId>> exchange;
  std::vector<HopId> hand_over, hand_back;
  std::size_t core() const { return std::size_t{1} << exchange.size(); }
};

/// Adds the hops; for reduce_scatter and all_gather the number of ranks must be a power of two.
void declare_halving(Pattern& pattern, Halving& halving, std::uint16_t lane, std::uint32_t tag,
                     const Connection& like);
/// `data` by group.
void emit_halving(Emission& out, std::span<const Halving> all, std::span<const Slice> data,
                  HalvingPart part);

}  // namespace rehearse
