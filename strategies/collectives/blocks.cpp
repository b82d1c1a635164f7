// Grouping by node and by leaf.
#include "strategies/collectives/blocks.hpp"

#include <map>

namespace rehearse {

namespace {

template <class Key>
std::vector<std::vector<Rank>> blocks_by(std::span<const Rank> group, Key&& key_of) {
  std::vector<std::vector<Rank>> blocks;
  std::map<std::size_t, std::size_t> place;
  for (const Rank rank : group) {
    const auto [found, added] = place.try_emplace(key_of(rank), blocks.size());
    if (added) blocks.emplace_back();
    blocks[found->second].push_back(rank);
  }
  return blocks;
}

}  // namespace

std::vector<DeviceId> leaf_by_node(const Topology& topology) {
  constexpr DeviceId none{UINT32_MAX};
  std::vector<DeviceId> leaf(topology.node_count(), none);
  for (const Link& link : topology.links()) {
    const NodeId node = topology[link.source].node;
    if (node == no_node || topology[link.target].node != no_node) continue;
    if (leaf[index(node)] == none) leaf[index(node)] = link.target;
  }
  return leaf;
}

std::vector<std::vector<Rank>> blocks_by_node(const Topology& topology,
                                              std::span<const Rank> group) {
  return blocks_by(group,
                   [&](Rank rank) { return index(topology[topology.device_of(rank)].node); });
}

std::vector<std::vector<Rank>> blocks_by_leaf(const Topology& topology,
                                              std::span<const Rank> group) {
  const std::vector<DeviceId> leaf = leaf_by_node(topology);
  return blocks_by(group, [&](Rank rank) {
    const NodeId node = topology[topology.device_of(rank)].node;
    return node == no_node ? std::size_t{0} : index(leaf[index(node)]);
  });
}

}  // namespace rehearse
