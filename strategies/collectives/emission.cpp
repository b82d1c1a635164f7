// Transfers of kept hops, and the edges between the stages of a collective.
#include "strategies/collectives/emission.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

Bytes on_the_wire(Bytes payload, const Protocol& protocol) {
  if (protocol.payload == 1) return payload;
  return Bytes{static_cast<std::int64_t>(
      std::ceil(static_cast<double>(payload.count()) / protocol.payload))};
}

void add_unique(std::vector<OpId>& ops, OpId op) {
  if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
}

}  // namespace

Emission::Emission(Program& program, const Pattern& pattern, const Fold& fold,
                   std::uint16_t protocol, std::span<const std::vector<OpId>> entry)
    : program_{program}, pattern_{pattern}, fold_{fold}, ready_(fold.roles) {
  const bool folded = fold.kept < pattern.hops.size();
  program_.protocols = pattern.protocols;
  place_.assign(pattern.hops.size(), 0);
  for (std::size_t h = 0; h < pattern.hops.size(); ++h) {
    const auto hop = static_cast<HopId>(h);
    if (!keeps(hop)) continue;
    place_[h] = static_cast<std::uint32_t>(kept_hops_.size());
    kept_hops_.push_back(hop);
    Connection connection = pattern.hops[h].connection;
    connection.protocol = protocol;
    connections_.push_back(program_.connect(std::move(connection)));
    if (folded) program_.folded.push_back(fold.paths[h]);
  }
  for (std::size_t r = 0; r < entry.size(); ++r)
    for (const OpId op : entry[r]) add_unique(ready_[fold.role[r]], op);
}

OpId Emission::send(HopId hop, const Payload& payload, std::span<const OpId> after,
                    std::uint32_t name, std::uint32_t number) {
  const ConnectionId connection = connections_[place_[index(hop)]];
  const Protocol& protocol = protocol_of(program_, program_[connection]);
  return program_.add_transfer(comm_lane(pattern_[hop].lane), {name, number},
                               {.connection = connection,
                                .source_buffer = payload.source.buffer,
                                .target_buffer = payload.target.buffer,
                                .combine = payload.combine,
                                .source_offset = payload.source.offset,
                                .target_offset = payload.target.offset,
                                .size = payload.source.size,
                                .wire = on_the_wire(payload.longest, protocol)},
                               after);
}

std::vector<OpId> Emission::ready_for(HopId hop) const {
  const Connection& connection = pattern_[hop].connection;
  std::vector<OpId> inputs;
  for (const OpId op : ready(connection.source)) add_unique(inputs, op);
  for (const OpId op : ready(connection.target)) add_unique(inputs, op);
  for (const Rank rank : connection.others)
    for (const OpId op : ready(rank)) add_unique(inputs, op);
  return inputs;
}

void Emission::touch(std::vector<std::vector<OpId>>& next, Rank rank, OpId op) const {
  add_unique(next[fold_.role[index(rank)]], op);
}

void Emission::end_stage(std::span<const OpId> last) {
  std::vector<std::vector<OpId>> next(ready_.size());
  for (std::size_t place = 0; place < last.size(); ++place) {
    if (last[place] == no_op) continue;
    const Connection& connection = pattern_[kept_hops_[place]].connection;
    touch(next, connection.source, last[place]);
    touch(next, connection.target, last[place]);
    for (const Rank rank : connection.others) touch(next, rank, last[place]);
  }
  for (std::size_t role = 0; role < next.size(); ++role)
    if (!next[role].empty()) ready_[role] = std::move(next[role]);
}

}  // namespace rehearse
