// How each flat algorithm lays itself over a group: orders, trees, channels, lanes.
#pragma once

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

CollectivePlan plan_ring(const CollectiveShape& shape, Routing& routing);
CollectivePlan plan_tree(const CollectiveShape& shape, Routing& routing);
CollectivePlan plan_halving(const CollectiveShape& shape, Routing& routing);
CollectivePlan plan_pairwise(const CollectiveShape& shape, Routing& routing);
CollectivePlan plan_in_switch(const CollectiveShape& shape, Routing& routing);

/// Whether the ranks of each group hang on one switch that reduces.
bool share_reducing_switch(const Topology& topology, std::span<const std::vector<Rank>> groups);

}  // namespace rehearse
