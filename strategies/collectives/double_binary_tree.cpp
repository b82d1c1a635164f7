// Double binary tree: half of the data is reduced up and sent down one tree, half the other.
//
//        tree 1, n = 8                    tree 2: mirrored
//        0                                7          In-order trees: odd positions are leaves of
//        └────── 4                  3 ──────┘        the first tree and inner nodes of the second.
//            2───┴───6          1───┴───5            Every rank sends and receives 2S in all, so
//           1 3     5 7        0 2     4 6           the links are used fully in both directions.
//
//   T ≈ 2 · depth · (alpha + c/beta) + 2S/beta,  depth = log2 n,  c = one chunk of the pipeline
//
// Children must not add into the same bytes at once: the first adds into its parent's data, the
// others write beside them, and the parent adds those up itself (in no time: a real executor's
// reduction is part of the receive).
//
// Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
// Parallel Computing 35 (2009). With n odd the second tree is the first shifted by one.
#include <algorithm>
#include <bit>

#include "strategies/collectives/tree.hpp"

namespace rehearse {

namespace {

// In-order: position 0 is the root with one child; below it, a position with lowest set bit b
// covers the b-1 positions on either side.
TreePlace place_in_order(std::uint32_t position, std::uint32_t n) {
  TreePlace place;
  if (position == 0) {
    if (n > 1) place.children.push_back(std::bit_floor(n - 1));
    return place;
  }
  const std::uint32_t bit = position & (~position + 1);
  const std::uint32_t above = (position ^ bit) | (bit << 1);
  place.parent = above < n ? above : position ^ bit;
  if (bit == 1) return place;
  place.children.push_back(position - bit / 2);
  std::uint32_t right = bit / 2;
  while (right > 0 && position + right >= n) right /= 2;
  if (right > 0) place.children.push_back(position + right);
  return place;
}

}  // namespace

TreePair double_binary_tree(std::size_t n) {
  const auto count = static_cast<std::uint32_t>(n);
  TreePair pair;
  pair.second.resize(n);
  for (std::uint32_t p = 0; p < count; ++p) pair.first.push_back(place_in_order(p, count));
  const auto moved = [&](std::uint32_t p) {
    return count % 2 == 0 ? count - 1 - p : (p + 1) % count;
  };
  for (std::uint32_t p = 0; p < count; ++p) {
    TreePlace place = pair.first[p];
    if (place.parent) place.parent = moved(*place.parent);
    for (std::uint32_t& child : place.children) child = moved(child);
    pair.second[moved(p)] = std::move(place);
  }
  return pair;
}

std::vector<TreePlace> nested_tree(std::span<const TreePlace> outer,
                                   std::span<const TreePlace> inner) {
  const auto width = static_cast<std::uint32_t>(inner.size());
  std::uint32_t root = 0;
  while (inner[root].parent) ++root;
  std::vector<TreePlace> places;
  for (std::uint32_t block = 0; block < outer.size(); ++block) {
    for (TreePlace place : inner) {
      if (place.parent) *place.parent += block * width;
      for (std::uint32_t& child : place.children) child += block * width;
      places.push_back(std::move(place));
    }
    TreePlace& head = places[block * width + root];
    if (outer[block].parent) head.parent = *outer[block].parent * width + root;
    for (const std::uint32_t child : outer[block].children)
      head.children.push_back(child * width + root);
  }
  return places;
}

std::uint16_t declare_tree(Pattern& pattern, Tree& tree, TreePart part, std::uint16_t lane,
                           std::uint32_t tag, const Connection& like) {
  const std::size_t n = tree.ranks.size();
  tree.up.assign(n, HopId{});
  tree.down.assign(n, HopId{});
  tree.own.assign(n, {});
  constexpr std::uint32_t most_children = 3;  // two of a binary tree, one inside the node
  const auto add = [&](std::size_t source, std::size_t target, std::uint32_t which) {
    Connection connection = like;
    connection.source = tree.ranks[source];
    connection.target = tree.ranks[target];
    return pattern.add(
        {std::move(connection), static_cast<std::uint16_t>(lane + which), tag * 16 + which});
  };
  for (std::size_t p = 0; p < n; ++p) {
    const auto& children = tree.places[p].children;
    ASSERT(children.size() <= most_children);
    if (tree.places[p].parent && part != TreePart::broadcast)
      tree.up[p] = add(p, *tree.places[p].parent, 0);
    for (std::uint32_t c = 0; c < children.size(); ++c) {
      if (c > 0 && part != TreePart::broadcast)
        tree.own[p].push_back(add(p, p, 1 + most_children + c));
      if (part != TreePart::reduce) tree.down[children[c]] = add(p, children[c], 1 + c);
    }
  }
  return static_cast<std::uint16_t>(lane + 1 + 2 * most_children);
}

namespace {

/// A kept hop, and the places of the hops whose arrivals it waits for.
struct Seat {
  enum class Kind : std::uint8_t { add_up, add_beside, add_own, send_down };
  Kind kind;
  std::size_t tree;
  HopId hop;
  std::size_t beside = 0;  // which scratch buffer, for the children after the first
  std::vector<std::uint32_t> waits_for;
  std::vector<OpId> inputs;
};

class Seats {
 public:
  Seats(const Emission& out, std::span<const Tree> trees, TreePart part) : out_{out} {
    for (number_ = 0; number_ < trees.size(); ++number_) {
      const Tree& tree = trees[number_];
      const std::vector<std::size_t> downwards = parents_first(tree);
      if (part != TreePart::broadcast)
        for (auto p = downwards.rbegin(); p != downwards.rend(); ++p) add_reducing(tree, *p);
      if (part != TreePart::reduce)
        for (const std::size_t p : downwards) add_spreading(tree, p, part);
    }
  }
  std::vector<Seat> seats;

 private:
  static std::vector<std::size_t> parents_first(const Tree& tree) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < tree.ranks.size(); ++p)
      if (!tree.places[p].parent) order.push_back(p);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const std::uint32_t child : tree.places[order[i]].children) order.push_back(child);
    return order;
  }

  // After which arrivals position p holds the sum of all below it.
  std::vector<std::uint32_t> summed(const Tree& tree, std::size_t p) const {
    if (!tree.own[p].empty()) return {out_.place(tree.own[p].back())};
    const auto& children = tree.places[p].children;
    if (children.empty()) return {};
    return {out_.place(tree.up[children[0]])};
  }

  void add_reducing(const Tree& tree, std::size_t p) {
    const auto& children = tree.places[p].children;
    for (std::size_t c = 1; c < children.size(); ++c) {
      const HopId own = tree.own[p][c - 1];
      const HopId before = c == 1 ? tree.up[children[0]] : tree.own[p][c - 2];
      if (out_.keeps(own))
        seats.push_back({Seat::Kind::add_own,
                         number_,
                         own,
                         c - 1,
                         {out_.place(before), out_.place(tree.up[children[c]])},
                         {}});
    }
    const auto parent = tree.places[p].parent;
    if (!parent || !out_.keeps(tree.up[p])) return;
    const auto& siblings = tree.places[*parent].children;
    const auto which =
        static_cast<std::size_t>(std::find(siblings.begin(), siblings.end(), p) - siblings.begin());
    seats.push_back({which > 0 ? Seat::Kind::add_beside : Seat::Kind::add_up, number_, tree.up[p],
                     which > 0 ? which - 1 : 0, summed(tree, p), out_.ready_for(tree.up[p])});
  }

  void add_spreading(const Tree& tree, std::size_t p, TreePart part) {
    const auto parent = tree.places[p].parent;
    if (!parent || !out_.keeps(tree.down[p])) return;
    Seat seat{Seat::Kind::send_down, number_, tree.down[p], 0, {}, {}};
    if (tree.places[*parent].parent)
      seat.waits_for = {out_.place(tree.down[*parent])};
    else if (part == TreePart::all_reduce)
      seat.waits_for = summed(tree, *parent);
    if (part == TreePart::broadcast) seat.inputs = out_.ready_for(tree.down[p]);
    seats.push_back(std::move(seat));
  }

  const Emission& out_;
  std::size_t number_ = 0;  // of the tree at hand
};

Emission::Payload payload_of(const Seat& seat, Buffer scratch, Slice piece, Bytes longest) {
  const auto aside = static_cast<Buffer>(index(scratch) + seat.beside);
  const Slice beside{aside, piece.offset, piece.size};
  switch (seat.kind) {
    case Seat::Kind::add_up:
      return {piece, piece, Combine::sum, longest};
    case Seat::Kind::add_beside:
      return {piece, beside, Combine::overwrite, longest};
    case Seat::Kind::add_own:
      return {beside, piece, Combine::sum, longest};
    case Seat::Kind::send_down:
      break;
  }
  return {piece, piece, Combine::overwrite, longest};
}

}  // namespace

void emit_tree(Emission& out, std::span<const Tree> trees, std::span<const TreeData> data,
               TreePart part, std::size_t chunks, std::size_t rounds) {
  ASSERT(data.size() == trees.size());
  const Seats all(out, trees, part);
  const std::uint32_t up = out.name("tree_reduce"), down = out.name("tree_broadcast");
  std::vector<OpId> last(out.kept(), no_op), inputs;
  for (std::size_t chunk = 0; chunk < std::min(chunks, rounds); ++chunk) {
    for (const Seat& seat : all.seats) {
      inputs.clear();
      if (chunk == 0) inputs = seat.inputs;
      for (const std::uint32_t place : seat.waits_for) {
        ASSERT(last[place] != no_op);
        inputs.push_back(last[place]);
      }
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      const TreeData& through = data[seat.tree];
      const Cut pieces(through.data, chunks);
      last[out.place(seat.hop)] = out.send(
          seat.hop, payload_of(seat, through.scratch, pieces[chunk], pieces.longest()), inputs,
          seat.kind == Seat::Kind::send_down ? down : up, static_cast<std::uint32_t>(chunk));
    }
  }
  out.end_stage(last);
}

}  // namespace rehearse
