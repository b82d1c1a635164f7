// The ranks of a machine as a group, for collectives among all of them.
#pragma once

#include <vector>

#include "topology/topology.hpp"

namespace rehearse {

inline std::vector<Rank> all_ranks(const Topology& topology) {
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < topology.rank_count(); ++r) ranks.push_back(static_cast<Rank>(r));
  return ranks;
}

}  // namespace rehearse
