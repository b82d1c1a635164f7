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

}  // namespace rehearse
