// Bytes are added up by connection first: a program has many more transfers than connections.
#include "sim/engine/totals.hpp"

#include <algorithm>

namespace rehearse {

void add_up(const Program& program, const Paths& paths, const Topology& topology,
            Timeline& timeline) {
  std::vector<Bytes> carried(program.connections().size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    timeline.makespan = std::max(timeline.makespan, timeline.spans[i].end);
    if (op.kind != WorkKind::transfer) continue;
    carried[index(program.transfer(op).connection)] += program.transfer(op).wire;
  }
  if (!program.folded.empty()) return;
  timeline.link_bytes.assign(topology.links().size(), Bytes{0});
  for (std::size_t c = 0; c < carried.size(); ++c)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(c)))
      timeline.link_bytes[index(crossing.link)] += carried[c];
}

}  // namespace rehearse
