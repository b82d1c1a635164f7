// Which ranks are close: those of one node, and the nodes under one leaf switch.
#pragma once

#include <span>
#include <vector>

#include "topology/topology.hpp"

namespace rehearse {

/// The fabric switch on which each node's first uplink ends; DeviceId{UINT32_MAX} without one.
std::vector<DeviceId> leaf_by_node(const Topology& topology);

/// The ranks of a group by node, in the group's order; one block where there are no nodes.
std::vector<std::vector<Rank>> blocks_by_node(const Topology& topology,
                                              std::span<const Rank> group);

/// The same, one level up: by leaf.
std::vector<std::vector<Rank>> blocks_by_leaf(const Topology& topology,
                                              std::span<const Rank> group);

}  // namespace rehearse
