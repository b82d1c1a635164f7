// In which order ranks sit in a ring, found on the graph so that the slowest link is as fast as
// possible, and how many rings it takes to use all of the machine's links.
#pragma once

#include <span>
#include <vector>

#include "strategies/collectives/blocks.hpp"
#include "topology/routing.hpp"

namespace rehearse {

/// How many channels use all NICs of a node: one each, but no more than its ranks have of their
/// own.
std::size_t useful_channels(const Routing& routing, std::span<const Rank> group);

/// One order per channel. `channels` 0: as many as use the machine fully (its NICs, or the disjoint
/// rings of a node).
std::vector<std::vector<Rank>> ring_orders(Routing& routing, std::span<const Rank> group,
                                           std::size_t channels);

}  // namespace rehearse
