// Who sends to whom in a collective, before anything is said about when or what. A pattern is small
// (a few hops per rank) even where its transfers are millions, so it can be looked at as a whole:
// to find which ranks are alike (fold.hpp), and to give every rank a place in a ring or tree.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

enum class HopId : std::uint32_t {};
inline constexpr HopId no_hop{UINT32_MAX};

struct Hop {
  Connection connection;
  std::uint16_t lane = 0;  // transfers of one lane of a rank follow one another
  std::uint32_t tag = 0;   // its part in the algorithm
  std::uint16_t twin = 0;  // which of the lanes that play the same part: a child's, a channel's
  std::uint8_t stage = 0;  // its transfers wait for what the stages before did at both its ends
  std::array<HopId, 2> follows{no_hop, no_hop};  // whose arrivals its transfers wait for
  /// The rank on whose stream the hop's transfers run.
  Rank owner() const {
    return connection.shape == Connection::Shape::switch_reduce ? connection.target
                                                                : connection.source;
  }
};

/// Hops with the same one follow one another.
inline std::uint64_t stream_key(const Hop& hop) {
  return static_cast<std::uint64_t>(index(hop.owner())) << 16 | hop.lane;
}

/// Where the hops of a ring or tree run. Those that share a rank need lanes or tags of their own;
/// with one tag and lanes `twin` apart they are channels that do the same side by side.
struct LaneTag {
  std::uint16_t lane = 0;
  std::uint32_t tag = 0;
  std::uint16_t twin = 0;
  std::uint8_t stage = 0;
};

struct Pattern {
  std::vector<Hop> hops;
  std::vector<Protocol> protocols;
  bool pipelined = false;  // its stages run at the same time, on different pieces

  HopId add(Hop hop) {
    hops.push_back(std::move(hop));
    return static_cast<HopId>(hops.size() - 1);
  }
  Hop& operator[](HopId id) { return hops[index(id)]; }
  const Hop& operator[](HopId id) const { return hops[index(id)]; }
};

/// The hop's way and rank-to-rank ends: source, target and others, each once.
template <class Visit>
void for_each_end(const Connection& connection, Visit&& visit) {
  if (connection.shape != Connection::Shape::point_to_point) {
    for (const Rank rank : connection.others) visit(rank);
    return;
  }
  visit(connection.source);
  if (connection.target != connection.source) visit(connection.target);
}

}  // namespace rehearse
