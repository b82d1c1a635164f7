// Random machines and random Programs for the tests. The same seed gives the same ones on every
// machine: std::mt19937_64 is specified to the bit, the standard distributions are not.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sim/program/program.hpp"
#include "topology/topology.hpp"

namespace rehearse {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : generator_{seed} {}

  /// A whole number in [0, below). The bias of the remainder is far below what tests could see.
  std::size_t below(std::size_t below) { return static_cast<std::size_t>(generator_() % below); }
  std::size_t between(std::size_t least, std::size_t most) {
    return least + below(most - least + 1);
  }
  bool once_in(std::size_t times) { return below(times) == 0; }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 generator_;
};

/// Stars, two halves behind one shared trunk, full meshes and random graphs, of 2 to 9 ranks.
Topology random_topology(Draw& draw);

/// Compute, markers and transfers (also multicast, switch_reduce, posted, zero bytes, a rank to
/// itself) on several streams, in every third program on queues too, with edges and protocols, for
/// the ranks of `topology`.
Program random_program(Draw& draw, const Topology& topology);

}  // namespace rehearse
