// Ring all-reduce: n-1 reduce-scatter steps, then n-1 all-gather steps.
//
//   0 ──▶ 1     In every step each rank sends one chunk of S/n bytes to its right and passes on
//   ▲     │     what it received in the step before, so all n links are busy all the time:
//   3 ◀── 2     T = 2(n-1) · (alpha + S / (n · beta))
//
// Bandwidth-optimal (Patarasuk and Yuan, 2009); its latency grows with n. Each half by itself is a
// reduce-scatter or an all-gather. A chain is a ring cut open, with the data in pieces behind one
// another, posted: T = (n-1) · alpha + (n-2+C) · S / (C · beta) for broadcast and reduce.
#include "strategies/collectives/ring.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "strategies/collectives/algorithms.hpp"
#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/channels.hpp"
#include "strategies/collectives/ring_order.hpp"

namespace rehearse {

namespace {

/// The chunks of one ring by owner, and the longest chunk of all rings beside it.
class Chunks {
 public:
  Chunks(const Ring& ring, const RingData& data, Bytes longest_data)
      : owns_{ring.owns}, parts_(data.data, ring.order.size()), data_{data} {
    const Bytes longest_part = Cut({{}, {}, longest_data}, ring.order.size()).longest();
    longest_ = Cut({{}, {}, longest_part}, data.shares).longest();
  }
  Slice of(std::size_t owner) const {
    const Slice part = parts_[owns_[owner]];
    return data_.shares == 1 ? part : Cut(part, data_.shares)[data_.share];
  }
  Bytes longest() const { return longest_; }

 private:
  std::span<const std::uint32_t> owns_;
  Cut parts_;
  RingData data_;
  Bytes longest_;
};

/// One kept hop of one ring, with what its steps need at hand.
struct RingSeat {
  const Ring* ring;
  const Chunks* chunks;
  std::uint32_t position;
  std::uint32_t place;   // of its hop among the kept ones
  std::uint32_t before;  // place of the hop that brings it data
  std::vector<OpId> inputs;
};

std::vector<RingSeat> seats_of(const Emission& out, std::span<const Ring> rings,
                               std::span<const RingData> data, std::deque<Chunks>& chunks) {
  ASSERT(data.size() == rings.size());
  Bytes longest_data;
  for (const RingData& each : data) longest_data = std::max(longest_data, each.data.size);
  std::vector<RingSeat> seats;
  for (std::size_t r = 0; r < rings.size(); ++r) {
    const Ring& ring = rings[r];
    const std::size_t n = ring.order.size();
    if (n < 2) continue;
    bool cut = false;
    for (std::size_t i = 0; i < n; ++i) {
      const HopId hop = ring.hop(i);
      if (!out.keeps(hop)) continue;
      if (!std::exchange(cut, true)) chunks.emplace_back(ring, data[r], longest_data);
      seats.push_back({&ring, &chunks.back(), static_cast<std::uint32_t>(i), out.place(hop),
                       out.place(ring.hop(i + n - 1)), out.ready_for(hop)});
    }
  }
  return seats;
}

std::size_t steps_of(const Ring& ring, RingPart part) {
  const std::size_t once = ring.order.size() - 1;
  return part == RingPart::all_reduce ? 2 * once : once;
}

std::string_view name_of(RingPart part) {
  constexpr std::array<std::string_view, 3> names{"ring_all_reduce", "ring_reduce_scatter",
                                                  "ring_all_gather"};
  return names[static_cast<std::size_t>(part)];
}

}  // namespace

void declare_ring(Pattern& pattern, Ring& ring, LaneTag on, const Connection& like) {
  const std::size_t n = ring.order.size();
  ASSERT(ring.owns.size() == n);
  ring.first = static_cast<HopId>(pattern.hops.size());
  if (n < 2) return;
  for (std::size_t i = 0; i < n; ++i) {
    Connection connection = like;
    connection.source = ring.order[i];
    connection.target = ring.order[(i + 1) % n];
    pattern.add(
        {std::move(connection), on.lane, on.tag, on.twin, on.stage, {ring.hop(i + n - 1), no_hop}});
  }
}

void emit_ring(Emission& out, std::span<const Ring> rings, std::span<const RingData> data,
               RingPart part, std::size_t steps) {
  std::deque<Chunks> chunks;
  const std::vector<RingSeat> seats = seats_of(out, rings, data, chunks);
  const std::uint32_t name = out.name(name_of(part));
  std::vector<OpId> received(out.kept().size(), no_op), arriving(out.kept().size(), no_op);
  std::size_t longest = 0;
  for (const RingSeat& seat : seats) longest = std::max(longest, steps_of(*seat.ring, part));
  const OpId first = out.next_op();
  const bool cut_short = steps < longest;
  longest = std::min(longest, steps);

  // Which chunk position i passes on in step s: the one it owns travels n-1 steps to reach it while
  // it is being reduced, and starts from it when it is being gathered.
  const std::size_t lead = part == RingPart::all_gather ? 0 : 1;
  for (std::size_t step = 0; step < longest; ++step) {
    for (const RingSeat& seat : seats) {
      const Ring& ring = *seat.ring;
      const std::size_t n = ring.order.size();
      if (step >= steps_of(ring, part)) continue;
      const std::size_t back = lead + (step < n ? step : step - n);  // no division: a hot loop
      const std::size_t owner = seat.position + (seat.position < back ? n : 0) - back;
      const bool reducing = part != RingPart::all_gather && step < n - 1;
      const Slice chunk = seat.chunks->of(owner);
      const OpId input = received[seat.before];
      arriving[seat.place] = out.send(
          ring.hop(seat.position),
          {chunk, chunk, reducing ? Combine::sum : Combine::overwrite, seat.chunks->longest()},
          step == 0 ? std::span<const OpId>(seat.inputs) : std::span<const OpId>(&input, 1), name,
          static_cast<std::uint32_t>(step));
    }
    std::swap(received, arriving);
    if (step + 1 < longest) continue;
    for (std::size_t p = 0; p < received.size(); ++p)  // shorter rings ended a step or more before
      if (received[p] == no_op || (arriving[p] != no_op && arriving[p] > received[p]))
        received[p] = arriving[p];
  }
  out.end_stage(received);
  if (cut_short) out.note_rounds(first, longest);
}

void declare_chain(Pattern& pattern, Ring& chain, LaneTag on, const Connection& like) {
  chain.first = static_cast<HopId>(pattern.hops.size());
  for (std::size_t i = 0; i + 1 < chain.order.size(); ++i) {
    Connection connection = like;
    connection.posted = true;
    connection.source = chain.order[i];
    connection.target = chain.order[i + 1];
    pattern.add({std::move(connection),
                 on.lane,
                 on.tag,
                 on.twin,
                 on.stage,
                 {i > 0 ? chain.hop(i - 1) : no_hop, no_hop}});
  }
}

void emit_chain(Emission& out, std::span<const Ring> chains, std::span<const Slice> data,
                Combine combine, std::size_t chunks, std::size_t rounds) {
  ASSERT(data.size() == chains.size());
  Bytes longest;
  for (const Slice& each : data) longest = std::max(longest, Cut(each, chunks).longest());
  const std::uint32_t name = out.name(combine == Combine::sum ? "chain_reduce" : "chain_broadcast");
  std::vector<OpId> last(out.kept().size(), no_op);
  const OpId first = out.next_op();
  std::size_t hops = 0;
  for (const Ring& chain : chains) hops = std::max(hops, chain.order.size() - 1);
  for (std::size_t chunk = 0; chunk < std::min(chunks, rounds); ++chunk) {
    for (std::size_t i = 0; i < hops; ++i) {
      for (std::size_t c = 0; c < chains.size(); ++c) {
        const Ring& chain = chains[c];
        if (i + 1 >= chain.order.size() || !out.keeps(chain.hop(i))) continue;
        const HopId hop = chain.hop(i);
        std::vector<OpId> inputs;
        if (chunk == 0) inputs = out.ready_for(hop);
        if (i > 0) inputs.push_back(last[out.place(chain.hop(i - 1))]);
        const Slice piece = Cut(data[c], chunks)[chunk];
        last[out.place(hop)] = out.send(hop, {piece, piece, combine, longest}, inputs, name,
                                        static_cast<std::uint32_t>(chunk));
      }
    }
  }
  out.end_stage(last);
  if (rounds < chunks) out.note_rounds(first, rounds);
}

namespace {

LaneTag channel_lane(std::size_t channel) {
  const auto lane = static_cast<std::uint16_t>(channel);
  return {lane, 0, lane};
}

// The part of the data that belongs to a rank is that of its place in the group, whatever its place
// in the ring.
std::vector<std::uint32_t> owned_parts(const CollectiveShape& shape, std::span<const Rank> order) {
  const Rank highest = *std::max_element(shape.group.begin(), shape.group.end());
  std::vector<std::uint32_t> place(index(highest) + 1);
  for (std::size_t p = 0; p < shape.group.size(); ++p)
    place[index(shape.group[p])] = static_cast<std::uint32_t>(p);
  std::vector<std::uint32_t> owns;
  for (const Rank rank : order) owns.push_back(place[index(rank)]);
  return owns;
}

// A chain that starts (broadcast) or ends (reduce) at the root: the ring cut open there.
std::vector<Rank> cut_open(std::vector<Rank> order, Rank root, bool starts) {
  const auto at = std::find(order.begin(), order.end(), root);
  std::rotate(order.begin(), starts ? at : at + 1, order.end());
  return order;
}

CollectivePlan plan_chain(const CollectiveShape& shape, Routing& routing) {
  CollectivePlan plan;
  const bool spreads = shape.kind == CollectiveKind::broadcast;
  std::vector<Ring> chains;
  const auto orders = ring_orders(routing, shape.group, shape.channels);
  const std::size_t width = blocks_by_node(routing.topology(), shape.group).front().size();
  for (std::size_t c = 0; c < orders.size(); ++c) {
    chains.push_back({cut_open(orders[c], shape.group[shape.root], spreads), {}, {}});
    declare_chain(plan.pattern, chains.back(), channel_lane(c), connection_like(c, width));
  }
  plan.paced = true;
  plan.pipeline = {shape.group.size() - 1, orders.size(), 2};
  plan.rounds = [](std::size_t pieces) { return pieces; };
  plan.emit = [chains = std::move(chains), spreads](Emission& out, const CollectiveBuffers& buffers,
                                                    std::size_t pieces, std::size_t rounds) {
    emit_chain(out, chains, shares_of(buffers.data, chains.size()),
               spreads ? Combine::overwrite : Combine::sum, pieces, rounds);
  };
  return plan;
}

RingPart ring_part(CollectiveKind kind) {
  if (kind == CollectiveKind::reduce_scatter) return RingPart::reduce_scatter;
  if (kind == CollectiveKind::all_gather) return RingPart::all_gather;
  return RingPart::all_reduce;
}

CollectivePlan plan_ring(const CollectiveShape& shape, Routing& routing) {
  if (shape.kind == CollectiveKind::broadcast || shape.kind == CollectiveKind::reduce)
    return plan_chain(shape, routing);
  CollectivePlan plan;
  std::vector<Ring> rings;
  const auto orders = ring_orders(routing, shape.group, shape.channels);
  const std::size_t channels = orders.size(), n = shape.group.size();
  const std::size_t width = blocks_by_node(routing.topology(), shape.group).front().size();
  for (std::size_t c = 0; c < channels; ++c) {
    rings.push_back({orders[c], owned_parts(shape, orders[c]), {}});
    declare_ring(plan.pattern, rings.back(), channel_lane(c), connection_like(c, width));
  }
  plan.paced = true;
  plan.pipeline.shares = channels;
  const RingPart part = ring_part(shape.kind);
  plan.rounds = [n, part](std::size_t) { return (part == RingPart::all_reduce ? 2 : 1) * (n - 1); };
  plan.key = [n](Bytes size) { return Cut({{}, {}, size}, n).longest().count(); };
  plan.emit = [rings = std::move(rings), part](Emission& out, const CollectiveBuffers& buffers,
                                               std::size_t, std::size_t rounds) {
    std::vector<RingData> data;
    for (std::size_t c = 0; c < rings.size(); ++c) data.push_back({buffers.data, c, rings.size()});
    emit_ring(out, rings, data, part, rounds);
  };
  return plan;
}

Refusal ring_refusal(const CollectiveShape& shape, const Topology&) {
  return refuse_all_but(
      {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
       CollectiveKind::broadcast, CollectiveKind::reduce},
      shape.kind);
}

}  // namespace

Algorithm by_ring() {
  return {"ring", "chunks go round a ring; bandwidth-optimal, latency grows with ranks",
          ring_refusal, plan_ring};
}

}  // namespace rehearse
