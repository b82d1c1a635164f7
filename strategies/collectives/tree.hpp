// Binary trees as building blocks: the two trees of an all-reduce, and one alone for broadcast and
// reduce.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "strategies/collectives/emission.hpp"

namespace rehearse {

/// A node's place in a tree over positions 0 … n-1.
struct TreePlace {
  std::optional<std::uint32_t> parent;
  std::vector<std::uint32_t> children;
  friend bool operator==(const TreePlace&, const TreePlace&) = default;
};

/// The two trees of Sanders, Speck and Träff: each spans all n positions, and whoever is an inner
/// node in one is a leaf in the other (n even; with n odd one position is a leaf in both).
struct TreePair {
  std::vector<TreePlace> first, second;
};
TreePair double_binary_tree(std::size_t n);

/// Trees of small trees: places of `inner` within each block, and of `outer` among the blocks,
/// which are joined at their inner roots. For nodes of several ranks.
std::vector<TreePlace> nested_tree(std::span<const TreePlace> outer,
                                   std::span<const TreePlace> inner);

/// What a hop of a tree carries, and when in a round it is emitted: after all it may follow.
struct TreeSeat {
  enum class Kind : std::uint8_t { add_up, add_beside, add_own, send_down };
  Kind kind{};
  std::uint32_t beside = 0;  // which scratch buffer, for the children after the first
  std::uint64_t turn = 0;
};

/// One tree over ranks.
struct Tree {
  std::vector<Rank> ranks;  // by position
  std::vector<TreePlace> places;
  HopId first{};                // its hops follow one another
  std::vector<TreeSeat> seats;  // by hop, from the first on
};

/// What goes through a tree. Pieces of every child but the first land in a scratch buffer first:
/// `scratch`, the one after it, and so on, each as long as the data's buffer.
struct TreeData {
  Slice data;
  Buffer scratch{};
};

enum class TreePart : std::uint8_t { all_reduce, reduce, broadcast };

/// Adds the hops that `part` needs, each on a lane of its own from `on.lane` on; returns the next
/// free lane.
std::uint16_t declare_tree(Pattern& pattern, Tree& tree, TreePart part, LaneTag on,
                           const Connection& like);

/// Emits `chunks` pieces through all trees side by side, at most `rounds` of them.
void emit_tree(Emission& out, std::span<const Tree> trees, std::span<const TreeData> data,
               TreePart part, std::size_t chunks,
               std::size_t rounds = std::numeric_limits<std::size_t>::max());

}  // namespace rehearse
