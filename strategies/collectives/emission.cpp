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

Emission::Emission(Program& program, const Pattern& pattern, const Fold& fold, const Where& where)
    : program_{program}, pattern_{pattern}, fold_{fold}, where_{where} {
  program_.protocols = pattern.protocols;
  program_.folded = fold.paths;
  for (std::size_t place = 0; place < fold.kept().size(); ++place) {
    Connection connection = pattern[fold.kept()[place]].connection;
    connection.protocol = where.protocol;
    connection.by_kernels = where.by_kernels;
    if (!fold.paths.empty()) connection.limit = fold.limits[place];
    // Its own, whatever the other collectives of the program have.
    const BytesPerSecond limit = protocol_of(program_, connection).limit;
    if (limit.count() > 0 && (connection.limit.count() == 0 || connection.limit > limit))
      connection.limit = limit;
    connections_.push_back(program_.connect(std::move(connection)));
  }
  latest_.resize(fold.kept().size());
}

OpId Emission::send(HopId hop, const Payload& payload, std::span<const OpId> after,
                    std::uint32_t name, std::uint32_t number) {
  const ConnectionId connection = connections_[place(hop)];
  const Protocol& protocol = protocol_of(program_, program_[connection]);
  return program_.add_transfer(comm_lane(where_.lane + pattern_[hop].lane), {name, number},
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

void Emission::add_ready(Rank rank, std::vector<OpId>& ops) const {
  std::uint32_t stage = 0;
  for (const HopId hop : fold_.touching(rank)) stage = std::max(stage, latest_[place(hop)].stage);
  if (stage == 0) {
    if (index(rank) < where_.entry.size())
      for (const OpId op : where_.entry[index(rank)]) add_unique(ops, op);
    return;
  }
  for (const HopId hop : fold_.touching(rank))
    if (latest_[place(hop)].stage == stage) add_unique(ops, latest_[place(hop)].op);
}

std::vector<OpId> Emission::ready_for(HopId hop) const {
  std::vector<OpId> inputs;
  if (stages_ > 0 || !where_.entry.empty())
    for_each_end(pattern_[hop].connection, [&](Rank rank) { add_ready(rank, inputs); });
  return inputs;
}

std::vector<OpId> Emission::done(Rank rank) const {
  std::vector<OpId> ops;
  add_ready(rank, ops);
  return ops;
}

void Emission::note_rounds(OpId first, std::size_t count) {
  const std::size_t ops = program_.size() - index(first);
  if (count == 0 || ops % count != 0) return;
  rounds_ = {first, ops / count, count};
}

void Emission::begin_piece() {
  latest_.assign(latest_.size(), {});
  stages_ = 0;
}

void Emission::end_stage(std::span<const OpId> last) {
  ++stages_;
  for (std::size_t place = 0; place < last.size(); ++place)
    if (last[place] != no_op) latest_[place] = {last[place], stages_};
}

}  // namespace rehearse
