// Trees laid over ranks: who follows whom, and a pipeline of pieces through all trees at once.
#include "strategies/collectives/tree.hpp"

#include <algorithm>

#include "strategies/collectives/algorithms.hpp"
#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/channels.hpp"
#include "strategies/collectives/ring_order.hpp"

namespace rehearse {

namespace {

constexpr std::uint32_t most_children = 3;  // two of a binary tree, one inside the node
constexpr std::uint64_t downwards = std::uint64_t{1} << 32;

/// How far each position is from the leaves below it, and from the root.
struct Levels {
  std::vector<std::uint32_t> height, depth;

  explicit Levels(std::span<const TreePlace> places) : height(places.size()), depth(places.size()) {
    std::vector<std::uint32_t> order;  // parents first
    for (std::uint32_t p = 0; p < places.size(); ++p)
      if (!places[p].parent) order.push_back(p);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const std::uint32_t child : places[order[i]].children) {
        depth[child] = depth[order[i]] + 1;
        order.push_back(child);
      }
    ASSERT(order.size() == places.size());
    for (auto p = order.rbegin(); p != order.rend(); ++p)
      for (const std::uint32_t child : places[*p].children)
        height[*p] = std::max(height[*p], height[child] + 1);
  }
};

class Declaration {
 public:
  Declaration(Pattern& pattern, Tree& tree, TreePart part, LaneTag on, const Connection& like)
      : pattern_{pattern}, tree_{tree}, part_{part}, on_{on}, like_{like}, levels_(tree.places) {
    const std::size_t n = tree.places.size();
    up_.assign(n, no_hop);
    down_.assign(n, no_hop);
    own_.resize(n);
    tree.first = static_cast<HopId>(pattern.hops.size());
  }

  void run() {
    for (std::uint32_t p = 0; p < tree_.places.size(); ++p) {
      const auto& [parent, children] = tree_.places[p];
      ASSERT(children.size() <= most_children);
      if (part_ != TreePart::broadcast) add_reducing(p);
      if (part_ == TreePart::reduce) continue;
      for (std::uint32_t c = 0; c < children.size(); ++c)
        down_[children[c]] =
            add(p, children[c], 1, c,
                {TreeSeat::Kind::send_down, 0, downwards + levels_.depth[children[c]]});
    }
    for (std::uint32_t p = 0; p < tree_.places.size(); ++p) say_what_follows(p);
  }

 private:
  // Part 0 goes up, part 1 down (to like children on twin lanes), the others add a rank's own.
  HopId add(std::uint32_t source, std::uint32_t target, std::uint32_t part, std::uint32_t child,
            TreeSeat seat) {
    Connection connection = like_;
    connection.posted = true;
    connection.source = tree_.ranks[source];
    connection.target = tree_.ranks[target];
    tree_.seats.push_back(seat);
    return pattern_.add({std::move(connection), static_cast<std::uint16_t>(on_.lane + part + child),
                         on_.tag * 16 + part, static_cast<std::uint16_t>(on_.twin + child),
                         on_.stage});
  }

  // Upwards by height: a rank follows those below it, and adds its own before it sends.
  void add_reducing(std::uint32_t p) {
    const std::uint64_t turn = std::uint64_t{levels_.height[p]} * 8;
    const auto& children = tree_.places[p].children;
    for (std::uint32_t c = 1; c < children.size(); ++c)
      own_[p].push_back(
          add(p, p, 1 + most_children + c, 0, {TreeSeat::Kind::add_own, c - 1, turn + c}));
    const auto parent = tree_.places[p].parent;
    if (!parent) return;
    const auto& siblings = tree_.places[*parent].children;
    const auto which = static_cast<std::uint32_t>(std::find(siblings.begin(), siblings.end(), p) -
                                                  siblings.begin());
    const auto kind = which > 0 ? TreeSeat::Kind::add_beside : TreeSeat::Kind::add_up;
    up_[p] = add(p, *parent, 0, 0, {kind, which > 0 ? which - 1 : 0, turn + 7});
  }

  // After which arrival p holds the sum of all below it.
  HopId summed(std::uint32_t p) const {
    if (!own_[p].empty()) return own_[p].back();
    const auto& children = tree_.places[p].children;
    return children.empty() ? no_hop : up_[children[0]];
  }

  // A rank sends up once all below it has been added, and down once it has the whole sum.
  void say_what_follows(std::uint32_t p) {
    const auto& [parent, children] = tree_.places[p];
    if (part_ != TreePart::broadcast) {
      if (parent) pattern_[up_[p]].follows = {summed(p), no_hop};
      for (std::size_t c = 1; c < children.size(); ++c)
        pattern_[own_[p][c - 1]].follows = {c == 1 ? up_[children[0]] : own_[p][c - 2],
                                            up_[children[c]]};
    }
    if (!parent || part_ == TreePart::reduce) return;
    const bool from_root = !tree_.places[*parent].parent;
    if (!from_root) pattern_[down_[p]].follows = {down_[*parent], no_hop};
    if (from_root && part_ == TreePart::all_reduce)
      pattern_[down_[p]].follows = {summed(*parent), no_hop};
  }

  Pattern& pattern_;
  Tree& tree_;
  TreePart part_;
  LaneTag on_;
  const Connection& like_;
  Levels levels_;
  std::vector<HopId> up_, down_;         // by position: to its parent, from its parent
  std::vector<std::vector<HopId>> own_;  // by position: from its scratch to its data, per child
};

/// A kept hop of one of the trees.
struct Sender {
  std::size_t tree;
  HopId hop;
  TreeSeat seat;
};

std::vector<Sender> senders_of(const Emission& out, std::span<const Tree> trees) {
  std::vector<Sender> senders;
  std::size_t t = 0;  // trees and kept hops are both in the order of the pattern
  for (const HopId hop : out.kept()) {
    while (t + 1 < trees.size() && trees[t + 1].first <= hop) ++t;
    if (hop < trees[t].first || index(hop) - index(trees[t].first) >= trees[t].seats.size())
      continue;
    senders.push_back({t, hop, trees[t].seats[index(hop) - index(trees[t].first)]});
  }
  std::stable_sort(senders.begin(), senders.end(),
                   [](const Sender& a, const Sender& b) { return a.seat.turn < b.seat.turn; });
  return senders;
}

Emission::Payload payload_of(const TreeSeat& seat, Buffer scratch, Slice piece, Bytes longest) {
  const auto aside = static_cast<Buffer>(index(scratch) + seat.beside);
  const Slice beside{aside, piece.offset, piece.size};
  switch (seat.kind) {
    case TreeSeat::Kind::add_up:
      return {piece, piece, Combine::sum, longest};
    case TreeSeat::Kind::add_beside:
      return {piece, beside, Combine::overwrite, longest};
    case TreeSeat::Kind::add_own:
      return {beside, piece, Combine::sum, longest};
    case TreeSeat::Kind::send_down:
      break;
  }
  return {piece, piece, Combine::overwrite, longest};
}

}  // namespace

std::uint16_t declare_tree(Pattern& pattern, Tree& tree, TreePart part, LaneTag on,
                           const Connection& like) {
  Declaration(pattern, tree, part, on, like).run();
  return static_cast<std::uint16_t>(on.lane + 1 + 2 * most_children);
}

void emit_tree(Emission& out, std::span<const Tree> trees, std::span<const TreeData> data,
               TreePart part, std::size_t chunks, std::size_t rounds) {
  ASSERT(data.size() == trees.size());
  Bytes longest;
  for (const TreeData& each : data) longest = std::max(longest, Cut(each.data, chunks).longest());
  const OpId first = out.next_op();
  const std::vector<Sender> senders = senders_of(out, trees);
  const std::uint32_t up = out.name("tree_reduce"), down = out.name("tree_broadcast");
  std::vector<OpId> last(out.kept().size(), no_op), inputs;
  for (std::size_t chunk = 0; chunk < std::min(chunks, rounds); ++chunk) {
    for (const auto& [tree, hop, seat] : senders) {
      const bool goes_down = seat.kind == TreeSeat::Kind::send_down;
      inputs.clear();
      if (chunk == 0 && (!goes_down || part == TreePart::broadcast)) inputs = out.ready_for(hop);
      for (const HopId before : out.follows(hop)) {
        if (before == no_hop) continue;
        const OpId input = last[out.place(before)];
        ASSERT(input != no_op);
        if (inputs.empty() || inputs.back() != input) inputs.push_back(input);
      }
      const TreeData& through = data[tree];
      const Slice piece = Cut(through.data, chunks)[chunk];
      last[out.place(hop)] =
          out.send(hop, payload_of(seat, through.scratch, piece, longest), inputs,
                   goes_down ? down : up, static_cast<std::uint32_t>(chunk));
    }
  }
  out.end_stage(last);
  if (rounds < chunks) out.note_rounds(first, rounds);
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

CollectivePlan plan_tree(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan;
  const TreePart part = shape.kind == CollectiveKind::broadcast ? TreePart::broadcast
                        : shape.kind == CollectiveKind::reduce  ? TreePart::reduce
                                                                : TreePart::all_reduce;
  std::vector<Tree> trees = trees_for(shape, routing);
  const std::size_t width = blocks_by_node(routing.topology(), shape.group).front().size();
  std::uint16_t lane = 0;
  for (std::size_t t = 0; t < trees.size(); t += 2) {  // pairs: one per channel
    const std::uint16_t twin = lane;
    const Connection like = connection_like(t / 2, width);
    lane = declare_tree(plan.pattern, trees[t], part, {lane, 0, twin}, like);
    lane = declare_tree(plan.pattern, trees[t + 1], part, {lane, 1, twin}, like);
  }
  plan.paced = true;
  plan.pipeline = {(part == TreePart::all_reduce ? 2 : 1) * depth_of(trees.front()), trees.size()};
  plan.rounds = [](std::size_t pieces) { return pieces; };
  plan.emit = [trees = std::move(trees), part](Emission& out, const CollectiveBuffers& buffers,
                                               std::size_t pieces, std::size_t rounds) {
    std::vector<TreeData> data;
    for (const Slice& share : shares_of(buffers.data, trees.size()))
      data.push_back({share, buffers.scratch});
    emit_tree(out, trees, data, part, pieces, rounds);
  };
  return plan;
}

Refusal tree_refusal(const CollectiveShape& shape, const Topology&) {
  return refuse_all_but(
      {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce}, shape.kind);
}

}  // namespace

Algorithm by_tree() {
  return {"tree", "two binary trees, pipelined; latency grows with log2 of the ranks", tree_refusal,
          plan_tree};
}

}  // namespace rehearse
