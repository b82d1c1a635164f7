// Who sends to whom in a collective, before anything is said about when or what. A pattern is small
// (a few hops per rank) even where its transfers are millions, so it can be looked at as a whole:
// to find which ranks are alike (fold.hpp), and to give every rank a place in a ring or tree.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.hpp"

namespace rehearse {

enum class HopId : std::uint32_t {};

struct Hop {
  Connection connection;
  std::uint16_t lane = 0;  // transfers of one lane of a rank follow one another
  std::uint32_t tag = 0;   // its part in the algorithm; unique among the hops of one owner
  /// The rank on whose stream the hop's transfers run.
  Rank owner() const {
    return connection.shape == Connection::Shape::switch_reduce ? connection.target
                                                                : connection.source;
  }
};

struct Pattern {
  std::vector<Hop> hops;
  std::vector<Protocol> protocols;

  HopId add(Hop hop) {
    hops.push_back(std::move(hop));
    return static_cast<HopId>(hops.size() - 1);
  }
  const Hop& operator[](HopId id) const { return hops[index(id)]; }
};

}  // namespace rehearse
