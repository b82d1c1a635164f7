// Double binary tree: half of the data is reduced up and sent down one tree, half the other.
//
//        tree 1, n = 8                    tree 2: moved by one
//        0                                1          In-order trees: odd positions are leaves of
//        └────── 4                        └────── 5  the first tree and inner nodes of the second.
//            2───┴───6                        3───┴───7      Every rank sends and receives 2S in
//           1 3     5 7                      2 4     6 0     all: links are full in both
//           directions.
//
//   T ≈ 2 · depth · (alpha + c/beta) + 2S/beta,  depth = log2 n,  c = one chunk of the pipeline
//
// Children must not add into the same bytes at once: the first adds into its parent's data, the
// others write beside them, and the parent adds those up itself (in no time: a real executor's
// reduction is part of the receive).
//
// Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan,
// Parallel Computing 35 (2009).
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
  const auto moved = [&](std::uint32_t p) { return (p + 1) % count; };
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

namespace {

// A rank sends up once all below it has been added, and down once it has the whole sum.
void say_what_follows(Pattern& pattern, const Tree& tree, TreePart part) {
  const auto summed = [&](std::size_t p) {  // after which arrival p holds the sum of all below it
    if (!tree.own[p].empty()) return tree.own[p].back();
    const auto& children = tree.places[p].children;
    return children.empty() ? no_hop : tree.up[children[0]];
  };
  for (std::size_t p = 0; p < tree.places.size(); ++p) {
    const auto& [parent, children] = tree.places[p];
    if (part != TreePart::broadcast) {
      if (parent) pattern[tree.up[p]].follows = {summed(p), no_hop};
      for (std::size_t c = 1; c < children.size(); ++c)
        pattern[tree.own[p][c - 1]].follows = {c == 1 ? tree.up[children[0]] : tree.own[p][c - 2],
                                               tree.up[children[c]]};
    }
    if (!parent || part == TreePart::reduce) continue;
    const bool from_root = !tree.places[*parent].parent;
    if (!from_root)
      pattern[tree.down[p]].follows = {tree.down[*parent], no_hop};
    else if (part == TreePart::all_reduce)
      pattern[tree.down[p]].follows = {summed(*parent), no_hop};
  }
}

}  // namespace

std::uint16_t declare_tree(Pattern& pattern, Tree& tree, TreePart part, LaneTag on,
                           const Connection& like) {
  const std::size_t n = tree.ranks.size();
  tree.up.assign(n, HopId{});
  tree.down.assign(n, HopId{});
  tree.own.assign(n, {});
  constexpr std::uint32_t most_children = 3;  // two of a binary tree, one inside the node
  // Part 0 goes up, part 1 down (to like children on twin lanes), the others add a rank's own.
  const auto add = [&](std::size_t source, std::size_t target, std::uint32_t part_played,
                       std::uint32_t child) {
    Connection connection = like;
    connection.source = tree.ranks[source];
    connection.target = tree.ranks[target];
    const auto lane = static_cast<std::uint16_t>(on.lane + part_played + child);
    const auto twin = static_cast<std::uint16_t>(on.twin + child);
    return pattern.add({std::move(connection), lane, on.tag * 16 + part_played, twin});
  };
  for (std::size_t p = 0; p < n; ++p) {
    const auto& children = tree.places[p].children;
    ASSERT(children.size() <= most_children);
    if (tree.places[p].parent && part != TreePart::broadcast)
      tree.up[p] = add(p, *tree.places[p].parent, 0, 0);
    for (std::uint32_t c = 0; c < children.size(); ++c) {
      if (c > 0 && part != TreePart::broadcast)
        tree.own[p].push_back(add(p, p, 1 + most_children + c, 0));
      if (part != TreePart::reduce) tree.down[children[c]] = add(p, children[c], 1, c);
    }
  }
  say_what_follows(pattern, tree, part);
  return static_cast<std::uint16_t>(on.lane + 1 + 2 * most_children);
}

namespace {

/// A kept hop, what it carries, and when in a round it is emitted: after all that it may follow,
/// in whichever tree the one that stands for that is.
struct Seat {
  enum class Kind : std::uint8_t { add_up, add_beside, add_own, send_down };
  Kind kind;
  std::size_t tree;
  HopId hop;
  std::size_t beside;  // which scratch buffer, for the children after the first
  std::size_t turn;
  std::vector<OpId> inputs;
};

class Seats {
 public:
  Seats(const Emission& out, std::span<const Tree> trees, TreePart part) : out_{out} {
    for (number_ = 0; number_ < trees.size(); ++number_) {
      const Tree& tree = trees[number_];
      for (std::size_t p = 0; p < tree.places.size(); ++p) {
        if (part != TreePart::broadcast) add_reducing(tree, p);
        if (part != TreePart::reduce) add_spreading(tree, p, part);
      }
    }
    std::stable_sort(seats.begin(), seats.end(),
                     [](const Seat& a, const Seat& b) { return a.turn < b.turn; });
  }
  std::vector<Seat> seats;

 private:
  // Upwards by height: a rank follows those below it, and adds its own before it sends. Then down.
  static constexpr std::size_t downwards = std::size_t{1} << 32;
  static std::size_t height_of(const Tree& tree, std::size_t p) {
    std::size_t height = 0;
    for (const std::uint32_t child : tree.places[p].children)
      height = std::max(height, 1 + height_of(tree, child));
    return height;
  }
  static std::size_t depth_of(const Tree& tree, std::size_t p) {
    std::size_t depth = 0;
    for (auto at = tree.places[p].parent; at; at = tree.places[*at].parent) ++depth;
    return depth;
  }

  void add_reducing(const Tree& tree, std::size_t p) {
    for (std::size_t c = 0; c < tree.own[p].size(); ++c)
      if (out_.keeps(tree.own[p][c]))
        seats.push_back(
            {Seat::Kind::add_own, number_, tree.own[p][c], c, height_of(tree, p) * 8 + c, {}});
    const auto parent = tree.places[p].parent;
    if (!parent || !out_.keeps(tree.up[p])) return;
    const auto& siblings = tree.places[*parent].children;
    const auto which =
        static_cast<std::size_t>(std::find(siblings.begin(), siblings.end(), p) - siblings.begin());
    seats.push_back({which > 0 ? Seat::Kind::add_beside : Seat::Kind::add_up, number_, tree.up[p],
                     which > 0 ? which - 1 : 0, height_of(tree, p) * 8 + 7,
                     out_.ready_for(tree.up[p])});
  }

  void add_spreading(const Tree& tree, std::size_t p, TreePart part) {
    if (!tree.places[p].parent || !out_.keeps(tree.down[p])) return;
    seats.push_back(
        {Seat::Kind::send_down, number_, tree.down[p], 0, downwards + depth_of(tree, p),
         part == TreePart::broadcast ? out_.ready_for(tree.down[p]) : std::vector<OpId>{}});
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
  Bytes longest;
  for (const TreeData& each : data) longest = std::max(longest, Cut(each.data, chunks).longest());
  const Seats all(out, trees, part);
  const std::uint32_t up = out.name("tree_reduce"), down = out.name("tree_broadcast");
  std::vector<OpId> last(out.kept(), no_op), inputs;
  for (std::size_t chunk = 0; chunk < std::min(chunks, rounds); ++chunk) {
    for (const Seat& seat : all.seats) {
      inputs.clear();
      if (chunk == 0) inputs = seat.inputs;
      for (const HopId before : out.follows(seat.hop)) {
        if (before == no_hop) continue;
        ASSERT(last[out.place(before)] != no_op);
        inputs.push_back(last[out.place(before)]);
      }
      std::sort(inputs.begin(), inputs.end());
      inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
      const TreeData& through = data[seat.tree];
      const Cut pieces(through.data, chunks);
      last[out.place(seat.hop)] = out.send(
          seat.hop, payload_of(seat, through.scratch, pieces[chunk], longest), inputs,
          seat.kind == Seat::Kind::send_down ? down : up, static_cast<std::uint32_t>(chunk));
    }
  }
  out.end_stage(last);
}

}  // namespace rehearse
