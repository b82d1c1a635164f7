// Flat algorithms over a group. Channels split the data; each has its own order, lanes and tags.
#include "strategies/collectives/plans.hpp"

#include <algorithm>
#include <memory>

#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/halving_doubling.hpp"
#include "strategies/collectives/in_switch.hpp"
#include "strategies/collectives/pairwise.hpp"
#include "strategies/collectives/ring.hpp"
#include "strategies/collectives/ring_order.hpp"
#include "strategies/collectives/tree.hpp"

namespace rehearse {

namespace {

CollectivePlan empty_plan(const Topology& topology) {
  CollectivePlan plan;
  plan.pattern.protocols = topology.protocols;
  plan.rounds = [](std::size_t) { return std::size_t{0}; };
  plan.key = [](Bytes size) { return size.count(); };
  return plan;
}

// Channels start from different ranks of a node, and so from different NICs; only where there are
// more channels than ranks does the number choose among a rank's own NICs.
Connection connection_like(std::size_t channel, std::size_t ranks_of_node) {
  Connection like;
  like.channel = static_cast<std::uint16_t>(channel / ranks_of_node);
  return like;
}

LaneTag channel_lane(std::size_t channel) {
  const auto lane = static_cast<std::uint16_t>(channel);
  return {lane, 0, lane};
}

std::vector<Slice> shares_of(Slice data, std::size_t channels) {
  std::vector<Slice> shares;
  for (std::size_t c = 0; c < channels; ++c) shares.push_back(Cut(data, channels)[c]);
  return shares;
}

// The part of the data that belongs to a rank is that of its place in the group, whatever its place
// in the ring.
std::vector<std::uint32_t> owned_parts(const CollectiveShape& shape, std::span<const Rank> order) {
  const Rank highest = *std::max_element(shape.group.begin(), shape.group.end());
  std::vector<std::uint32_t> place(index(highest) + 1);
  for (std::size_t p = 0; p < shape.group.size(); ++p)
    place[index(shape.group[p])] = static_cast<std::uint32_t>(p);
  std::vector<std::uint32_t> owns;
  for (const Rank rank : order) owns.push_back(place[index(rank)]);
  return owns;
}

// A chain that starts (broadcast) or ends (reduce) at the root: the ring cut open there.
std::vector<Rank> cut_open(std::vector<Rank> order, Rank root, bool starts) {
  const auto at = std::find(order.begin(), order.end(), root);
  std::rotate(order.begin(), starts ? at : at + 1, order.end());
  return order;
}

CollectivePlan plan_chain(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan = empty_plan(routing.topology());
  const bool spreads = shape.kind == CollectiveKind::broadcast;
  auto chains = std::make_shared<std::vector<Ring>>();
  const auto orders = ring_orders(routing, shape.group, shape.channels);
  const std::size_t width = blocks_by_node(routing.topology(), shape.group).front().size();
  for (std::size_t c = 0; c < orders.size(); ++c) {
    chains->push_back({cut_open(orders[c], shape.group[shape.root], spreads), {}, {}});
    declare_chain(plan.pattern, chains->back(), channel_lane(c), connection_like(c, width));
  }
  plan.paced = true;
  plan.pipeline = {shape.group.size() - 1, orders.size(), 2};
  plan.rounds = [](std::size_t pieces) { return pieces; };
  plan.emit = [chains, spreads](Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
                                std::size_t rounds) {
    emit_chain(out, *chains, shares_of(buffers.data, chains->size()),
               spreads ? Combine::overwrite : Combine::sum, pieces, rounds);
  };
  return plan;
}

RingPart ring_part(CollectiveKind kind) {
  if (kind == CollectiveKind::reduce_scatter) return RingPart::reduce_scatter;
  if (kind == CollectiveKind::all_gather) return RingPart::all_gather;
  return RingPart::all_reduce;
}

}  // namespace

CollectivePlan plan_ring(const CollectiveShape& shape, Routing& routing) {
  if (shape.kind == CollectiveKind::broadcast || shape.kind == CollectiveKind::reduce)
    return plan_chain(shape, routing);
  CollectivePlan plan = empty_plan(routing.topology());
  auto rings = std::make_shared<std::vector<Ring>>();
  const auto orders = ring_orders(routing, shape.group, shape.channels);
  const std::size_t channels = orders.size(), n = shape.group.size();
  const std::size_t width = blocks_by_node(routing.topology(), shape.group).front().size();
  for (std::size_t c = 0; c < channels; ++c) {
    rings->push_back({orders[c], owned_parts(shape, orders[c]), {}});
    declare_ring(plan.pattern, rings->back(), channel_lane(c), connection_like(c, width));
  }
  plan.paced = true;
  plan.pipeline.shares = channels;
  const RingPart part = ring_part(shape.kind);
  plan.rounds = [n, part](std::size_t) { return (part == RingPart::all_reduce ? 2 : 1) * (n - 1); };
  plan.key = [n](Bytes size) { return Cut({{}, {}, size}, n).longest().count(); };
  plan.emit = [rings, part](Emission& out, const CollectiveBuffers& buffers, std::size_t,
                            std::size_t rounds) {
    std::vector<RingData> data;
    for (std::size_t c = 0; c < rings->size(); ++c)
      data.push_back({buffers.data, c, rings->size()});
    emit_ring(out, *rings, data, part, rounds);
  };
  return plan;
}

namespace {

std::vector<TreePlace> chain_of(std::size_t n) {
  std::vector<TreePlace> places(n);
  for (std::uint32_t p = 1; p < n; ++p) {
    places[p].parent = p - 1;
    places[p - 1].children = {p};
  }
  return places;
}

/// Two trees over a group of equal nodes: small trees inside the nodes, joined by one between them.
/// The second runs through each node the other way round, so that its head is another rank.
/// `places` are those of a node's ranks in the order of the small tree. NCCL has chains inside
/// nodes.
std::vector<Tree> trees_over(const std::vector<std::vector<Rank>>& nodes,
                             std::span<const TreePlace> inner,
                             std::span<const std::size_t> places) {
  const std::size_t width = nodes.front().size();
  const TreePair outer = double_binary_tree(nodes.size());
  Tree first{.ranks = {}, .places = nested_tree(outer.first, inner)};
  Tree second{.ranks = {}, .places = nested_tree(outer.second, inner)};
  for (const std::vector<Rank>& node : nodes)
    for (std::size_t i = 0; i < width; ++i) {
      first.ranks.push_back(node[places[i]]);
      second.ranks.push_back(node[places[width - 1 - i]]);
    }
  return {std::move(first), std::move(second)};
}

/// In which order a channel's chain goes through the ranks of a node: as its ring does, turned by
/// the channel so that heads, and with them NICs, are others.
std::vector<std::vector<std::size_t>> chain_orders(Routing& routing, std::span<const Rank> node,
                                                   std::size_t channels) {
  const std::vector<std::vector<Rank>> rings = ring_orders(routing, node, 0);
  if (channels == 0)
    channels = std::max<std::size_t>(rings.size(), std::min<std::size_t>(8, node.size()));
  const std::size_t apart = std::max<std::size_t>(1, node.size() / channels);
  std::vector<std::vector<std::size_t>> orders;
  for (std::size_t c = 0; c < channels; ++c) {
    std::vector<std::size_t>& order = orders.emplace_back();
    const std::vector<Rank>& ring = rings[c % rings.size()];
    for (std::size_t i = 0; i < node.size(); ++i)
      order.push_back(static_cast<std::size_t>(
          std::find(node.begin(), node.end(), ring[(i + c * apart) % node.size()]) - node.begin()));
  }
  return orders;
}

std::vector<Tree> flat_trees(std::span<const Rank> group) {
  const TreePair pair = double_binary_tree(group.size());
  const std::vector<Rank> ranks(group.begin(), group.end());
  return {{.ranks = ranks, .places = pair.first}, {.ranks = ranks, .places = pair.second}};
}

/// Two trees with the same root. The second turns the others by one place: leaves become inner.
std::vector<Tree> rooted_trees(std::span<const Rank> group, std::size_t root) {
  std::vector<Rank> first{group[root]}, second{group[root]};
  const std::size_t n = group.size();
  for (std::size_t i = 1; i < n; ++i) first.push_back(group[(root + i) % n]);
  for (std::size_t i = 1; i < n; ++i) second.push_back(first[i % (n - 1) + 1]);
  const std::vector<TreePlace> places = double_binary_tree(n).first;
  return {{.ranks = first, .places = places}, {.ranks = second, .places = places}};
}

std::size_t depth_of(const Tree& tree) {
  std::size_t deepest = 0;
  for (std::size_t p = 0; p < tree.places.size(); ++p) {
    std::size_t depth = 0;
    for (auto at = tree.places[p].parent; at; at = tree.places[*at].parent) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

std::vector<Tree> trees_for(const CollectiveShape& shape, Routing& routing) {
  if (shape.kind != CollectiveKind::all_reduce) return rooted_trees(shape.group, shape.root);
  const auto nodes = blocks_by_node(routing.topology(), shape.group);
  const bool chains = !routing.topology().library.name.empty();
  const bool nested = (nodes.size() > 1 || chains) && nodes.front().size() > 1 &&
                      std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) {
                        return node.size() == nodes.front().size();
                      });
  if (!nested) return flat_trees(shape.group);
  const std::size_t width = nodes.front().size();
  std::size_t channels = shape.channels;
  if (channels == 0 && nodes.size() > 1) channels = useful_channels(routing, shape.group);
  std::vector<std::vector<std::size_t>> orders;
  if (chains) orders = chain_orders(routing, nodes.front(), channels);
  // With fewer channels than ranks their heads are as far apart as NICs are.
  const std::size_t apart = std::max<std::size_t>(1, width / std::max<std::size_t>(1, channels));
  for (std::size_t c = 0; !chains && c < channels; ++c) {
    orders.emplace_back();
    for (std::size_t i = 0; i < width; ++i) orders.back().push_back((i + c * apart) % width);
  }
  const std::vector<TreePlace> inner = chains ? chain_of(width) : double_binary_tree(width).first;
  std::vector<Tree> trees;
  for (const std::vector<std::size_t>& order : orders)
    for (Tree& tree : trees_over(nodes, inner, order)) trees.push_back(std::move(tree));
  return trees;
}

}  // namespace

CollectivePlan plan_tree(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan = empty_plan(routing.topology());
  const TreePart part = shape.kind == CollectiveKind::broadcast ? TreePart::broadcast
                        : shape.kind == CollectiveKind::reduce  ? TreePart::reduce
                                                                : TreePart::all_reduce;
  auto trees = std::make_shared<std::vector<Tree>>(trees_for(shape, routing));
  const std::size_t width = blocks_by_node(routing.topology(), shape.group).front().size();
  std::uint16_t lane = 0;
  for (std::size_t t = 0; t < trees->size(); t += 2) {  // pairs: one per channel
    const std::uint16_t twin = lane;
    const Connection like = connection_like(t / 2, width);
    lane = declare_tree(plan.pattern, (*trees)[t], part, {lane, 0, twin}, like);
    lane = declare_tree(plan.pattern, (*trees)[t + 1], part, {lane, 1, twin}, like);
  }
  plan.paced = true;
  plan.pipeline = {(part == TreePart::all_reduce ? 2 : 1) * depth_of(trees->front()),
                   trees->size()};
  plan.rounds = [](std::size_t pieces) { return pieces; };
  plan.emit = [trees, part](Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
                            std::size_t rounds) {
    std::vector<TreeData> data;
    for (const Slice& share : shares_of(buffers.data, trees->size()))
      data.push_back({share, buffers.scratch});
    emit_tree(out, *trees, data, part, pieces, rounds);
  };
  return plan;
}

CollectivePlan plan_halving(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan = empty_plan(routing.topology());
  auto halving = std::make_shared<Halving>(Halving{.ranks = shape.group});
  const HalvingPart part = shape.kind == CollectiveKind::reduce_scatter
                               ? HalvingPart::reduce_scatter
                           : shape.kind == CollectiveKind::all_gather ? HalvingPart::all_gather
                                                                      : HalvingPart::all_reduce;
  declare_halving(plan.pattern, *halving, part, {}, Connection{});
  plan.emit = [halving, part](Emission& out, const CollectiveBuffers& buffers, std::size_t,
                              std::size_t) {
    emit_halving(out, {halving.get(), 1}, {&buffers.data, 1}, part);
  };
  return plan;
}

CollectivePlan plan_pairwise(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan = empty_plan(routing.topology());
  constexpr std::size_t lanes = 1024;  // sends that one rank has under way at most
  auto pairs = std::make_shared<Pairwise>(Pairwise{shape.group, 0, {}});
  const bool all = shape.kind == CollectiveKind::all_to_all;
  const std::size_t others = shape.group.size() - 1;
  declare_pairwise(plan.pattern, *pairs, all ? others : std::min<std::size_t>(others, 1), lanes,
                   Connection{});
  plan.emit = [pairs, all](Emission& out, const CollectiveBuffers& buffers, std::size_t,
                           std::size_t) {
    if (all)
      emit_all_to_all(out, *pairs, buffers.data, buffers.result);
    else
      emit_send_recv(out, *pairs, buffers.data, buffers.result);
  };
  return plan;
}

CollectivePlan plan_in_switch(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan = empty_plan(routing.topology());
  auto group = std::make_shared<SwitchGroup>();
  group->ranks = shape.group;
  for (std::size_t p = 0; p < shape.group.size(); ++p)
    group->owns.push_back(static_cast<std::uint32_t>(p));
  const SwitchPart part = shape.kind == CollectiveKind::reduce_scatter ? SwitchPart::reduce_scatter
                          : shape.kind == CollectiveKind::all_gather   ? SwitchPart::all_gather
                                                                       : SwitchPart::all_reduce;
  // One rank has nothing to add and nobody to copy to.
  if (shape.group.size() > 1) declare_switch(plan.pattern, *group, part, {}, Connection{});
  plan.paced = true;
  plan.pipeline = {2, shape.group.size(), chunks_in_switch * shape.group.size(), true};
  plan.emit = [group](Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
                      std::size_t) {
    emit_switch(out, {group.get(), 1}, {&buffers.data, 1}, pieces);
  };
  return plan;
}

bool share_reducing_switch(const Topology& topology, std::span<const std::vector<Rank>> groups) {
  std::vector<std::vector<DeviceId>> switches(topology.devices().size());
  for (const Link& link : topology.links())
    if (topology[link.target].reduces) switches[index(link.source)].push_back(link.target);
  const auto reaches = [&](Rank rank, DeviceId device) {
    const auto& near = switches[index(topology.device_of(rank))];
    return std::find(near.begin(), near.end(), device) != near.end();
  };
  return std::all_of(groups.begin(), groups.end(), [&](const std::vector<Rank>& group) {
    const auto& near = switches[index(topology.device_of(group.front()))];
    return std::any_of(near.begin(), near.end(), [&](DeviceId device) {
      return std::all_of(group.begin(), group.end(),
                         [&](Rank rank) { return reaches(rank, device); });
    });
  });
}

}  // namespace rehearse
