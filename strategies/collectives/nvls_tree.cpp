// NVLSTree: each node's switch adds the ranks' data, two trees go between the nodes, and the switch
// copies the sum; all of it one pipeline.
//
//   node 0   0 1 2 3      ① switch: rank j owns chunk j of the node's sum
//            └┴┬┴┘
//             switch ⇄    ② two trees between nodes for each chunk: in all
//   node 1   4 5 6 7
//            └┴┬┴┘        T ≈ 2 alpha + 2 log2 N (alpha' + c/beta') + the longest of its levels
//             switch ⇄    ③ switch: chunk j to everybody in the node
#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/hierarchical.hpp"
#include "strategies/collectives/in_switch.hpp"

namespace rehearse {

namespace {

constexpr Hierarchy trees_over_switches{2, TopLevel::tree, LowLevels::in_switch};

CollectivePlan plan_nvls_tree(const CollectiveShape& shape, Routing& routing) {
  return plan_hierarchical(shape, routing, trees_over_switches);
}

Refusal nvls_tree_refusal(const CollectiveShape& shape, const Topology& topology) {
  if (const auto refusal = hierarchy_refusal(shape, topology, trees_over_switches)) return refusal;
  const auto nodes = blocks_by_node(topology, shape.group);
  if (nodes.front().size() < 2 || !share_reducing_switch(topology, nodes))
    return "its nodes have no switch that reduces";
  return std::nullopt;
}

}  // namespace

Algorithm by_nvls_tree() {
  return {"nvls_tree", "the nodes' switches add and copy, two trees between nodes",
          nvls_tree_refusal, plan_nvls_tree, true};
}

}  // namespace rehearse
