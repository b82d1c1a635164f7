// Everybody to everybody, and neighbour to neighbour.
#pragma once

#include <span>
#include <vector>

#include "strategies/collectives/emission.hpp"

namespace rehearse {

struct Pairwise {
  std::vector<Rank> ranks;
  std::size_t peers = 0;    // how many others each rank sends to
  std::vector<HopId> hops;  // of rank p to p + d: hops[p * peers + d - 1]
};

/// All-to-all has n-1 peers, send_recv one. At most `lanes` sends of a rank go on at once.
void declare_pairwise(Pattern& pattern, Pairwise& pairs, std::size_t peers, std::size_t lanes,
                      const Connection& like);
/// Block q of rank p's data becomes block p of rank q's result, whose blocks are all as long as
/// block q.
void emit_all_to_all(Emission& out, const Pairwise& pairs, Slice data, Slice result);
/// All data of rank p become the result of rank p + 1.
void emit_send_recv(Emission& out, const Pairwise& pairs, Slice data, Slice result);

}  // namespace rehearse
