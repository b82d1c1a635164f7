// All-to-all: rank p sends block p+d to rank p+d, for d = 1 … n-1, as many at once as there are
// lanes.
//
//   d = 1   0▶1 1▶2 2▶3 3▶0     Shifted by d, so that nobody is everybody's first target.
//   d = 2   0▶2 1▶3 2▶0 3▶1     T ≥ (n-1)/n · S / beta of whatever all of a rank's sends share
//
// NCCL starts all of them in one group; the links decide. A rank's own block is copied in no time.
#include "strategies/collectives/pairwise.hpp"

#include <algorithm>

#include "strategies/collectives/algorithms.hpp"

namespace rehearse {

void declare_pairwise(Pattern& pattern, Pairwise& pairs, std::size_t peers, std::size_t lanes,
                      const Connection& like) {
  const std::size_t n = pairs.ranks.size();
  ASSERT(lanes > 0 && peers < n);
  pairs.peers = peers;
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t d = 1; d <= peers; ++d) {
      Connection connection = like;
      connection.source = pairs.ranks[p];
      connection.target = pairs.ranks[(p + d) % n];
      pairs.hops.push_back(
          pattern.add({std::move(connection), static_cast<std::uint16_t>((d - 1) % lanes),
                       static_cast<std::uint32_t>(d)}));
    }
  }
}

namespace {

void emit(Emission& out, const Pairwise& pairs, Slice data, Slice result, bool whole) {
  const std::size_t n = pairs.ranks.size();
  const std::uint32_t name = out.name(whole ? "send_recv" : "all_to_all");
  const Cut blocks(data, whole ? 1 : n);
  std::vector<OpId> last(out.kept().size(), no_op);
  for (std::size_t d = 1; d <= pairs.peers; ++d) {
    for (std::size_t p = 0; p < n; ++p) {
      const HopId hop = pairs.hops[p * pairs.peers + d - 1];
      if (!out.keeps(hop)) continue;
      const Slice source = blocks[whole ? 0 : (p + d) % n];
      const auto before = static_cast<std::int64_t>(whole ? 0 : p);
      const Slice target{result.buffer, result.offset + before * source.size, source.size};
      last[out.place(hop)] = out.send(hop, {source, target, Combine::overwrite, blocks.longest()},
                                      out.ready_for(hop), name, static_cast<std::uint32_t>(d));
    }
  }
  out.end_stage(last);
}

}  // namespace

void emit_all_to_all(Emission& out, const Pairwise& pairs, Slice data, Slice result) {
  emit(out, pairs, data, result, false);
}

void emit_send_recv(Emission& out, const Pairwise& pairs, Slice data, Slice result) {
  emit(out, pairs, data, result, true);
}

namespace {

CollectivePlan plan_pairwise(const CollectiveShape& shape, Routing&) {
  CollectivePlan plan;
  constexpr std::size_t lanes = 1024;  // sends that one rank has under way at most
  Pairwise pairs{shape.group, 0, {}};
  const bool all = shape.kind == CollectiveKind::all_to_all;
  const std::size_t others = shape.group.size() - 1;
  declare_pairwise(plan.pattern, pairs, all ? others : std::min<std::size_t>(others, 1), lanes,
                   Connection{});
  plan.emit = [pairs = std::move(pairs), all](Emission& out, const CollectiveBuffers& buffers,
                                              std::size_t, std::size_t) {
    if (all)
      emit_all_to_all(out, pairs, buffers.data, buffers.result);
    else
      emit_send_recv(out, pairs, buffers.data, buffers.result);
  };
  return plan;
}

Refusal pairwise_refusal(const CollectiveShape& shape, const Topology&) {
  return refuse_all_but({CollectiveKind::all_to_all, CollectiveKind::send_recv}, shape.kind);
}

}  // namespace

Algorithm by_pairwise() {
  return {"pairwise", "everybody sends to everybody at once", pairwise_refusal, plan_pairwise};
}

}  // namespace rehearse
