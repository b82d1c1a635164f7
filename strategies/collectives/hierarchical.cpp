// Hierarchical all-reduce: reduce-scatter inside each node, all-reduce between nodes among the
// ranks that own the same chunk, all-gather inside each node.
//
//   node 0   0 1 2 3     ① ring in the node: rank j owns chunk j     T = RS_g(S) + AR_N(S/g) +
//   AG_g(S)
//            │ │ │ │     ② all-reduce of chunk j along column j
//   node 1   4 5 6 7     ③ ring in the node                          the sum of its parts
//
// With three levels the columns are first reduced among the nodes of one leaf (rack), and only the
// chunk of a chunk crosses the spine. Every rank uses its own NIC in step ②. (Jia et al., "Highly
// scalable deep learning training system with mixed-precision", 2018.)
#include "strategies/collectives/hierarchical.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/halving_doubling.hpp"
#include "strategies/collectives/in_switch.hpp"
#include "strategies/collectives/ring.hpp"
#include "strategies/collectives/ring_order.hpp"
#include "strategies/collectives/tree.hpp"

namespace rehearse {

namespace {

/// Which slice each group works on: a chunk of a chunk of the data, as (parts, part) pairs.
using Cuts = std::vector<std::vector<std::size_t>>;

/// Groups of one level that work side by side on what the levels below have cut.
struct Level {
  std::vector<std::vector<Rank>> groups;
  Cuts cuts;  // by group
};

Slice slice_of(Slice data, std::span<const std::size_t> cuts) {
  for (std::size_t i = 0; i < cuts.size(); i += 2) data = Cut(data, cuts[i])[cuts[i + 1]];
  return data;
}

std::vector<RingData> ring_data(std::span<const Slice> slices) {
  std::vector<RingData> data;
  for (const Slice& slice : slices) data.push_back({slice});
  return data;
}

std::vector<Slice> slices_of(const Cuts& all, Slice data) {
  std::vector<Slice> slices;
  for (const auto& cuts : all) slices.push_back(slice_of(data, cuts));
  return slices;
}

// Ranks with the same place in their blocks form the groups of the next level.
Level columns_of(const std::vector<std::vector<Rank>>& blocks,
                 const std::vector<std::size_t>& cuts_of_blocks) {
  const std::size_t width = blocks.front().size();
  Level columns;
  for (std::size_t j = 0; j < width; ++j) {
    columns.groups.emplace_back();
    for (const std::vector<Rank>& block : blocks) columns.groups.back().push_back(block[j]);
    columns.cuts.push_back(cuts_of_blocks);
    columns.cuts.back().push_back(width);
    columns.cuts.back().push_back(j);
  }
  return columns;
}

std::vector<Level> levels_of(const CollectiveShape& shape, const Topology& topology,
                             std::size_t count) {
  std::vector<Level> levels(1);
  levels[0].groups = blocks_by_node(topology, shape.group);
  levels[0].cuts.resize(levels[0].groups.size());
  const Level columns = columns_of(levels[0].groups, {});
  if (count == 2) {
    levels.push_back(columns);
    return levels;
  }
  Level racks, top;
  for (std::size_t j = 0; j < columns.groups.size(); ++j) {
    const auto by_leaf = blocks_by_leaf(topology, columns.groups[j]);
    for (const std::vector<Rank>& rack : by_leaf) {
      racks.groups.push_back(rack);
      racks.cuts.push_back(columns.cuts[j]);
    }
    const Level above = columns_of(by_leaf, columns.cuts[j]);
    top.groups.insert(top.groups.end(), above.groups.begin(), above.groups.end());
    top.cuts.insert(top.cuts.end(), above.cuts.begin(), above.cuts.end());
  }
  levels.push_back(racks);
  levels.push_back(top);
  return levels;
}

std::vector<std::uint32_t> counted(std::size_t n) {
  std::vector<std::uint32_t> numbers(n);
  for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<std::uint32_t>(i);
  return numbers;
}

/// A level reduced, or gathered, by rings or by a switch.
struct LowStage {
  Cuts cuts;
  bool reduces;
  std::vector<Ring> rings;
  std::vector<SwitchGroup> switches;

  LowStage(Pattern& pattern, const Level& level, LowLevels how, bool reducing, LaneTag on)
      : cuts{level.cuts}, reduces{reducing} {
    for (const std::vector<Rank>& group : level.groups) {
      if (how == LowLevels::in_switch) {
        switches.push_back({.ranks = group, .owns = counted(group.size())});
        declare_switch(pattern, switches.back(),
                       reducing ? SwitchPart::reduce_scatter : SwitchPart::all_gather, on, {});
      } else {
        rings.push_back({.order = group, .owns = counted(group.size())});
        declare_ring(pattern, rings.back(), on, {});
      }
    }
  }

  void emit(Emission& out, Slice data, std::size_t pieces) const {
    const std::vector<Slice> slices = slices_of(cuts, data);
    if (!rings.empty())
      return emit_ring(out, rings, ring_data(slices),
                       reduces ? RingPart::reduce_scatter : RingPart::all_gather);
    emit_switch(out, switches, slices, pieces);
  }
};

/// The topmost level, all-reduced by whichever algorithm.
struct TopStage {
  Cuts cuts;
  std::vector<Ring> rings;
  std::vector<Tree> trees;  // two per group and way
  std::size_t ways;         // NICs of each rank, which split its data
  std::vector<Halving> halvings;
  std::vector<SwitchGroup> switches;
  std::uint8_t next_stage;

  TopStage(Pattern& pattern, const Level& level, TopLevel how, LaneTag on, std::size_t nics)
      : cuts{level.cuts}, ways{nics}, next_stage{static_cast<std::uint8_t>(on.stage + 1)} {
    for (const std::vector<Rank>& group : level.groups) {
      switch (how) {
        case TopLevel::ring:
          rings.push_back({.order = group, .owns = counted(group.size())});
          declare_ring(pattern, rings.back(), on, {});
          break;
        case TopLevel::tree:
          add_trees(pattern, group, on);
          break;
        case TopLevel::halving_doubling:
          halvings.push_back({.ranks = group});
          next_stage = declare_halving(pattern, halvings.back(), HalvingPart::all_reduce, on, {});
          break;
        case TopLevel::in_switch:
          switches.push_back({.ranks = group, .owns = counted(group.size())});
          declare_switch(pattern, switches.back(), SwitchPart::all_reduce, on, {});
          break;
      }
    }
  }

  void add_trees(Pattern& pattern, const std::vector<Rank>& group, LaneTag on) {
    const TreePair pair = double_binary_tree(group.size());
    for (std::size_t way = 0; way < ways; ++way) {
      Connection like;
      like.channel = static_cast<std::uint16_t>(way);
      on.twin = on.lane;
      trees.push_back({.ranks = group, .places = pair.first});
      on.lane = declare_tree(pattern, trees.back(), TreePart::all_reduce, on, like);
      on.tag += 1000;  // the two trees are different parts
      trees.push_back({.ranks = group, .places = pair.second});
      on.lane = declare_tree(pattern, trees.back(), TreePart::all_reduce, on, like);
      on.tag -= 1000;
    }
  }

  void emit(Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
            std::size_t rounds) const {
    const std::vector<Slice> slices = slices_of(cuts, buffers.data);
    if (!rings.empty())
      return emit_ring(out, rings, ring_data(slices), RingPart::all_reduce, rounds);
    if (!halvings.empty()) return emit_halving(out, halvings, slices, HalvingPart::all_reduce);
    if (!switches.empty()) return emit_switch(out, switches, slices, pieces);
    std::vector<TreeData> data;
    for (const Slice& slice : slices)
      for (std::size_t half = 0; half < 2 * ways; ++half)
        data.push_back({Cut(slice, 2 * ways)[half], buffers.scratch});
    emit_tree(out, trees, data, TreePart::all_reduce, pieces, rounds);
  }
};

struct Stages {
  std::vector<LowStage> reduce;
  TopStage top;
  std::vector<LowStage> gather;

  void emit(Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
            std::size_t rounds) const {
    for (const LowStage& each : reduce) each.emit(out, buffers.data, pieces);
    top.emit(out, buffers, pieces, rounds);
    for (const LowStage& each : gather) each.emit(out, buffers.data, pieces);
  }

  // Piece after piece, each through all levels: they work on different ones at the same time.
  void emit_pipelined(Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
                      std::size_t rounds) const {
    const OpId first = out.next_op();
    for (std::size_t piece = 0; piece < std::min(pieces, rounds); ++piece) {
      out.begin_piece();
      CollectiveBuffers part = buffers;
      part.data = Cut(buffers.data, pieces)[piece];
      for (const LowStage& each : reduce) each.emit(out, part.data, 1);
      top.emit(out, part, 1, 1);
      for (const LowStage& each : gather) each.emit(out, part.data, 1);
    }
    if (rounds < pieces) out.note_rounds(first, rounds);
  }
};

bool equally_long(const std::vector<std::vector<Rank>>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [&](const std::vector<Rank>& block) {
    return block.size() == blocks.front().size();
  });
}

}  // namespace

Refusal hierarchy_refusal(const CollectiveShape& shape, const Topology& topology,
                          const Hierarchy& hierarchy) {
  if (shape.kind != CollectiveKind::all_reduce) return "it does all_reduce only";
  const auto nodes = blocks_by_node(topology, shape.group);
  if (nodes.size() < 2) return "all ranks are in one node";
  if (!equally_long(nodes)) return "its nodes have unequally many ranks";
  if (hierarchy.levels < 3) return std::nullopt;
  std::vector<Rank> heads;
  for (const std::vector<Rank>& node : nodes) heads.push_back(node.front());
  const auto racks = blocks_by_leaf(topology, heads);
  if (racks.size() < 2) return "all nodes hang on one leaf switch";
  if (!equally_long(racks)) return "its leaf switches have unequally many nodes";
  if (racks.front().size() < 2) return "each leaf switch has one node only";
  return std::nullopt;
}

CollectivePlan plan_hierarchical(const CollectiveShape& shape, Routing& routing,
                                 const Hierarchy& hierarchy) {
  CollectivePlan plan;
  const std::vector<Level> levels = levels_of(shape, routing.topology(), hierarchy.levels);
  const std::size_t low = levels.size() - 1;
  const auto how = [&](std::size_t l) { return l == 0 ? hierarchy.low : LowLevels::ring; };
  // Stages that run at the same time need lanes of their own; a tree's hops take up to 14.
  const bool pipelined = hierarchy.low == LowLevels::in_switch;
  const std::size_t ways = std::max<std::size_t>(
      1, useful_channels(routing, shape.group) / levels[0].groups.front().size());
  plan.pattern.pipelined = pipelined;
  std::uint8_t stage = 0;
  const auto lanes = [&] {
    const auto lane = static_cast<std::uint16_t>(pipelined ? 16 * ways * stage : 0);
    return LaneTag{.lane = lane, .tag = stage, .twin = lane, .stage = stage};
  };
  std::vector<LowStage> reduce, gather;
  for (std::size_t l = 0; l < low; ++l, ++stage)
    reduce.emplace_back(plan.pattern, levels[l], how(l), true, lanes());
  TopStage top(plan.pattern, levels[low], hierarchy.top, lanes(), ways);
  stage = top.next_stage;
  for (std::size_t l = low; l-- > 0; ++stage)
    gather.emplace_back(plan.pattern, levels[l], how(l), false, lanes());

  const std::size_t columns = levels[low].groups.size(), n = levels[low].groups.front().size();
  if (hierarchy.top == TopLevel::tree || hierarchy.low == LowLevels::in_switch)
    plan.pipeline = {2 * static_cast<std::size_t>(std::ceil(std::log2(static_cast<double>(n)))),
                     2 * ways * columns};
  if (pipelined) {
    plan.pipeline.depth += 2;
    plan.pipeline.chunks = chunks_in_switch * columns;
    plan.pipeline.is_fixed = true;
  }
  plan.paced = hierarchy.top == TopLevel::tree || hierarchy.low == LowLevels::in_switch;
  plan.rounds = [how_top = hierarchy.top, n](std::size_t pieces) {
    if (how_top == TopLevel::tree) return pieces;
    return how_top == TopLevel::ring ? 2 * (n - 1) : 0;
  };
  plan.emit = [stages = Stages{std::move(reduce), std::move(top), std::move(gather)}, pipelined](
                  Emission& out, const CollectiveBuffers& buffers, std::size_t pieces,
                  std::size_t rounds) {
    if (pipelined) return stages.emit_pipelined(out, buffers, pieces, rounds);
    stages.emit(out, buffers, pieces, rounds);
  };
  return plan;
}

namespace {

template <std::size_t levels>
Refusal levels_refusal(const CollectiveShape& shape, const Topology& topology) {
  return hierarchy_refusal(shape, topology, {levels, {}, {}});
}

template <std::size_t levels, TopLevel top>
CollectivePlan plan_levels(const CollectiveShape& shape, Routing& routing) {
  return plan_hierarchical(shape, routing, {levels, top, LowLevels::ring});
}

}  // namespace

Algorithm by_hierarchical() {
  return {"hierarchical", "rings inside nodes, a ring between them", levels_refusal<2>,
          plan_levels<2, TopLevel::ring>};
}

Algorithm by_hierarchical_tree() {
  return {"hierarchical_tree", "rings inside nodes, two trees between them", levels_refusal<2>,
          plan_levels<2, TopLevel::tree>};
}

Algorithm by_hierarchical_halving_doubling() {
  return {"hierarchical_halving_doubling", "rings inside nodes, halving-doubling between them",
          levels_refusal<2>, plan_levels<2, TopLevel::halving_doubling>};
}

Algorithm by_hierarchical_3() {
  return {"hierarchical_3", "rings inside nodes, inside racks, between racks", levels_refusal<3>,
          plan_levels<3, TopLevel::ring>};
}

}  // namespace rehearse
