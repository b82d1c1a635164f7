// Collectives by levels: inside nodes, then between them (and between racks).
#pragma once

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

/// How the topmost level is reduced, and how the lower ones are.
enum class TopLevel : std::uint8_t { ring, tree, halving_doubling, in_switch };
enum class LowLevels : std::uint8_t { ring, in_switch };

struct Hierarchy {
  std::size_t levels = 2;  // 2: node, machine; 3: node, leaf, machine
  TopLevel top = TopLevel::ring;
  LowLevels low = LowLevels::ring;
};

/// Why the group does not divide into such levels; nothing when it does.
Refusal hierarchy_refusal(const CollectiveShape& shape, const Topology& topology,
                          const Hierarchy& hierarchy);
CollectivePlan plan_hierarchical(const CollectiveShape& shape, Routing& routing,
                                 const Hierarchy& hierarchy);

}  // namespace rehearse
