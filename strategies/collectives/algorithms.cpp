// The table, and what each algorithm refuses.
#include "strategies/collectives/algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "sim/base/error.hpp"
#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/hierarchical.hpp"
#include "strategies/collectives/plans.hpp"

namespace rehearse {

namespace {

using Refusal = std::optional<std::string>;

bool is_one_of(CollectiveKind kind, std::initializer_list<CollectiveKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Refusal no_such_kind(CollectiveKind kind) {
  return fmt::format("it does not do {}", to_string(kind));
}

Refusal ring_refusal(const CollectiveShape& shape, const Topology&) {
  if (is_one_of(shape.kind, {CollectiveKind::all_to_all, CollectiveKind::send_recv}))
    return no_such_kind(shape.kind);
  return std::nullopt;
}

Refusal tree_refusal(const CollectiveShape& shape, const Topology&) {
  if (!is_one_of(shape.kind,
                 {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce}))
    return no_such_kind(shape.kind);
  return std::nullopt;
}

Refusal halving_refusal(const CollectiveShape& shape, const Topology&) {
  if (shape.kind == CollectiveKind::all_reduce) return std::nullopt;
  if (!is_one_of(shape.kind, {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}))
    return no_such_kind(shape.kind);
  if (!std::has_single_bit(shape.group.size()))
    return fmt::format("for {} it needs a power of two ranks, not {}", to_string(shape.kind),
                       shape.group.size());
  return std::nullopt;
}

Refusal pairwise_refusal(const CollectiveShape& shape, const Topology&) {
  if (is_one_of(shape.kind, {CollectiveKind::all_to_all, CollectiveKind::send_recv}))
    return std::nullopt;
  return no_such_kind(shape.kind);
}

Refusal in_switch_refusal(const CollectiveShape& shape, const Topology& topology) {
  if (!is_one_of(shape.kind, {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                              CollectiveKind::all_gather}))
    return no_such_kind(shape.kind);
  if (shape.group.size() > 1 && !share_reducing_switch(topology, {&shape.group, 1}))
    return "its ranks share no switch that reduces";
  return std::nullopt;
}

Refusal nvls_tree_refusal(const CollectiveShape& shape, const Topology& topology) {
  if (const Refusal refusal = hierarchy_refusal(shape, topology, {2, {}, {}})) return refusal;
  const auto nodes = blocks_by_node(topology, shape.group);
  if (nodes.front().size() < 2 || !share_reducing_switch(topology, nodes))
    return "its nodes have no switch that reduces";
  return std::nullopt;
}

bool fabric_reduces(const Topology& topology) {
  return std::any_of(topology.devices().begin(), topology.devices().end(),
                     [](const Device& d) { return d.node == no_node && d.reduces; });
}

Refusal collnet_refusal(const CollectiveShape& shape, const Topology& topology) {
  if (const Refusal refusal = hierarchy_refusal(shape, topology, {2, {}, {}})) return refusal;
  if (!fabric_reduces(topology)) return "its fabric has no switch that reduces";
  return std::nullopt;
}

template <std::size_t levels>
Refusal levels_refusal(const CollectiveShape& shape, const Topology& topology) {
  return hierarchy_refusal(shape, topology, {levels, {}, {}});
}

template <std::size_t levels, TopLevel top, LowLevels low>
CollectivePlan plan_levels(const CollectiveShape& shape, Routing& routing) {
  return plan_hierarchical(shape, routing, {levels, top, low});
}

constexpr std::array table{
    Algorithm{"ring", "chunks go round a ring; bandwidth-optimal, latency grows with ranks",
              ring_refusal, plan_ring},
    Algorithm{"tree", "two binary trees, pipelined; latency grows with log2 of the ranks",
              tree_refusal, plan_tree},
    Algorithm{"halving_doubling", "exchange with partners at distance 1, 2, 4, …; log2 steps",
              halving_refusal, plan_halving},
    Algorithm{"hierarchical", "rings inside nodes, a ring between them", levels_refusal<2>,
              plan_levels<2, TopLevel::ring, LowLevels::ring>},
    Algorithm{"hierarchical_tree", "rings inside nodes, two trees between them", levels_refusal<2>,
              plan_levels<2, TopLevel::tree, LowLevels::ring>},
    Algorithm{"hierarchical_halving_doubling", "rings inside nodes, halving-doubling between them",
              levels_refusal<2>, plan_levels<2, TopLevel::halving_doubling, LowLevels::ring>},
    Algorithm{"hierarchical_3", "rings inside nodes, inside racks, between racks",
              levels_refusal<3>, plan_levels<3, TopLevel::ring, LowLevels::ring>},
    Algorithm{"nvls", "the node's switch adds and copies", in_switch_refusal, plan_in_switch, true},
    Algorithm{"nvls_tree", "the nodes' switches add and copy, two trees between nodes",
              nvls_tree_refusal, plan_levels<2, TopLevel::tree, LowLevels::in_switch>, true},
    Algorithm{"collnet", "rings inside nodes, the fabric's switches add (SHARP)", collnet_refusal,
              plan_levels<2, TopLevel::in_switch, LowLevels::ring>, true},
    Algorithm{"pairwise", "everybody sends to everybody at once", pairwise_refusal, plan_pairwise},
};

constexpr std::array kinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                           CollectiveKind::all_gather, CollectiveKind::broadcast,
                           CollectiveKind::reduce,     CollectiveKind::all_to_all,
                           CollectiveKind::send_recv};

}  // namespace

std::span<const Algorithm> algorithms() { return table; }

const Algorithm& algorithm(std::string_view name) {
  std::vector<std::string> names;
  for (const Algorithm& candidate : table) {
    if (candidate.name == name) return candidate;
    names.emplace_back(candidate.name);
  }
  throw InputError(fmt::format("unknown algorithm '{}'{}", name, did_you_mean(name, names)));
}

std::span<const CollectiveKind> collective_kinds() { return kinds; }

CollectiveKind collective_kind(std::string_view name) {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kinds) {
    if (to_string(kind) == name) return kind;
    names.emplace_back(to_string(kind));
  }
  throw InputError(fmt::format("unknown collective '{}'{}", name, did_you_mean(name, names)));
}

}  // namespace rehearse
