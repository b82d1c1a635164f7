// In-switch all-reduce: the switch adds what all ranks send and copies the sum to all of them.
//
//   0 ─┐            ┌─▶ 0     Rank i asks for the sum of chunk i (every rank sends S/n of it up,
//   1 ─┼─▶ switch ──┼─▶ 1     S/n comes down) and then has it copied to all (S/n up, S/n down at
//   2 ─┘   (adds)   └─▶ 2     every rank). In all S + S/n each way, against 2 (n-1)/n S of a ring:
//
//   T ≈ 2 alpha + (n+1)/n · S/beta        NCCL: algbw = wire rate · n/(n+1) for NVLS
#include "strategies/collectives/in_switch.hpp"

#include <algorithm>

namespace rehearse {

void declare_switch(Pattern& pattern, SwitchGroup& group, SwitchPart part, LaneTag on,
                    const Connection& like) {
  for (const Rank rank : group.ranks) {
    Connection reduce = like;
    reduce.posted = true;
    reduce.shape = Connection::Shape::switch_reduce;
    reduce.source = reduce.target = rank;
    reduce.others = group.ranks;
    Connection spread = reduce;
    spread.shape = Connection::Shape::multicast;
    HopId reduced = no_hop;
    if (part != SwitchPart::all_gather)
      reduced = pattern.add({std::move(reduce), on.lane, on.tag * 2, on.twin, on.stage});
    group.gather.push_back(reduced);
    // Side by side with the reduction where both are done, in its place where not.
    const auto lane =
        static_cast<std::uint16_t>(on.lane + (part == SwitchPart::all_reduce ? 1 : 0));
    if (part != SwitchPart::reduce_scatter)
      group.spread.push_back(pattern.add(
          {std::move(spread), lane, on.tag * 2 + 1, on.twin, on.stage, {reduced, no_hop}}));
  }
}

namespace {

/// A position of a group of which one hop or both are kept.
struct SwitchSeat {
  Slice chunk;
  Bytes longest;  // chunk of all groups
  HopId gather = no_hop, spread = no_hop;
};

std::vector<SwitchSeat> seats_of(const Emission& out, std::span<const SwitchGroup> groups,
                                 std::span<const Slice> data) {
  ASSERT(data.size() == groups.size());
  Bytes longest;
  for (const Slice& each : data) longest = std::max(longest, each.size);
  std::vector<SwitchSeat> seats;
  const auto kept = [&](std::span<const HopId> hops, std::size_t p) {
    return p < hops.size() && hops[p] != no_hop && out.keeps(hops[p]) ? hops[p] : no_hop;
  };
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const SwitchGroup& group = groups[g];
    const std::size_t n = group.ranks.size();
    for (std::size_t p = 0; p < n; ++p) {
      const HopId gather = kept(group.gather, p), spread = kept(group.spread, p);
      if (gather == no_hop && spread == no_hop) continue;
      seats.push_back(
          {Cut(data[g], n)[group.owns[p]], Cut({{}, {}, longest}, n).longest(), gather, spread});
    }
  }
  return seats;
}

}  // namespace

void emit_switch(Emission& out, std::span<const SwitchGroup> groups, std::span<const Slice> data,
                 std::size_t pieces) {
  const std::uint32_t gather = out.name("switch_reduce"), spread = out.name("multicast");
  std::vector<OpId> last(out.kept().size(), no_op);
  const auto emit = [&](HopId hop, const SwitchSeat& seat, std::size_t piece, std::uint32_t name) {
    std::vector<OpId> inputs;
    const HopId before = out.follows(hop)[0];
    if (before != no_hop)
      inputs.push_back(last[out.place(before)]);
    else if (piece == 0)
      inputs = out.ready_for(hop);
    const Slice slice = Cut(seat.chunk, pieces)[piece];
    const Bytes longest = Cut({{}, {}, seat.longest}, pieces).longest();
    last[out.place(hop)] = out.send(hop, {slice, slice, Combine::overwrite, longest}, inputs, name,
                                    static_cast<std::uint32_t>(piece));
  };
  const std::vector<SwitchSeat> seats = seats_of(out, groups, data);
  for (std::size_t piece = 0; piece < pieces; ++piece)
    for (const SwitchSeat& seat : seats) {
      if (seat.gather != no_hop) emit(seat.gather, seat, piece, gather);
      if (seat.spread != no_hop) emit(seat.spread, seat, piece, spread);
    }
  out.end_stage(last);
}

bool share_reducing_switch(const Topology& topology, std::span<const std::vector<Rank>> groups) {
  std::vector<std::vector<DeviceId>> switches(topology.devices().size());
  for (const Link& link : topology.links())
    if (topology[link.target].reduces) switches[index(link.source)].push_back(link.target);
  const auto reaches = [&](Rank rank, DeviceId device) {
    const auto& near = switches[index(topology.device_of(rank))];
    return std::find(near.begin(), near.end(), device) != near.end();
  };
  return std::all_of(groups.begin(), groups.end(), [&](const std::vector<Rank>& group) {
    const auto& near = switches[index(topology.device_of(group.front()))];
    return std::any_of(near.begin(), near.end(), [&](DeviceId device) {
      return std::all_of(group.begin(), group.end(),
                         [&](Rank rank) { return reaches(rank, device); });
    });
  });
}

}  // namespace rehearse
