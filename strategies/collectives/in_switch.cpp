// In-switch all-reduce: the switch adds what all ranks send and copies the sum to all of them.
//
//   0 ─┐            ┌─▶ 0     Rank i asks for the sum of chunk i (every rank sends S/n of it up,
//   1 ─┼─▶ switch ──┼─▶ 1     S/n comes down) and then has it copied to all (S/n up, S/n down at
//   2 ─┘   (adds)   └─▶ 2     every rank). In all S + S/n each way, against 2 (n-1)/n S of a ring:
//
//   T ≈ 2 alpha + (n+1)/n · S/beta        NCCL: algbw = wire rate · n/(n+1) for NVLS
#include "strategies/collectives/in_switch.hpp"

namespace rehearse {

void declare_switch(Pattern& pattern, SwitchGroup& group, SwitchPart part, LaneTag on,
                    const Connection& like) {
  for (const Rank rank : group.ranks) {
    Connection reduce = like;
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

void emit_switch(Emission& out, std::span<const SwitchGroup> groups, std::span<const Slice> data,
                 SwitchPart part, std::size_t pieces) {
  ASSERT(data.size() == groups.size());
  const std::uint32_t gather = out.name("switch_reduce"), spread = out.name("multicast");
  std::vector<OpId> last(out.kept().size(), no_op);
  Bytes longest_data;
  for (const Slice& each : data) longest_data = std::max(longest_data, each.size);
  const auto emit = [&](HopId hop, Slice piece, Bytes longest, std::vector<OpId> inputs,
                        std::uint32_t name, std::size_t number) {
    last[out.place(hop)] = out.send(hop, {piece, piece, Combine::overwrite, longest}, inputs, name,
                                    static_cast<std::uint32_t>(number));
  };
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const SwitchGroup& group = groups[g];
      const Cut chunks(data[g], group.ranks.size());
      const Cut longest_chunks({{}, {}, longest_data}, group.ranks.size());
      const Bytes longest = Cut({{}, {}, longest_chunks.longest()}, pieces).longest();
      for (std::size_t p = 0; p < group.ranks.size(); ++p) {
        const Slice slice = Cut(chunks[group.owns[p]], pieces)[piece];
        const HopId up = group.gather[p];
        const auto first_inputs = [&](HopId hop) {
          return piece == 0 ? out.ready_for(hop) : std::vector<OpId>{};
        };
        if (part != SwitchPart::all_gather && out.keeps(up))
          emit(up, slice, longest, first_inputs(up), gather, piece);
        if (part == SwitchPart::reduce_scatter || !out.keeps(group.spread[p])) continue;
        const HopId down = group.spread[p];
        const bool after_reduction = part == SwitchPart::all_reduce;
        emit(down, slice, longest,
             after_reduction ? std::vector{last[out.place(up)]} : first_inputs(down), spread,
             piece);
      }
    }
  }
  out.end_stage(last);
}

}  // namespace rehearse
