// What a collective takes at least: the longest chain of its transfers, each as quick as if it were
// alone. Streams keep their order, so a link that is shared can only make transfers longer, and no
// op begin earlier for it: the chain is a lower bound, and needs no event.
//
// Rounds alike are not all emitted. Whoever takes part in the first one (begin b), has w to do in
// each of R, and sees the end d after it begins its part of the last, is done after
//
//   b + (R - 1) · w + d        of any hop
//
// That is not only a bound where no link is ever short and ops of a round wait for none of another
// round but those before them on their stream. A chain then goes from lane to lane within a round
// and from round to round along a lane; moving all its rounds to the lane with the most to do makes
// it no shorter, so the longest of these is the longest of all, to the picosecond.
#include <algorithm>
#include <vector>

#include "sim/engine/sharing.hpp"
#include "sim/program/stream_table.hpp"
#include "strategies/collectives/rehearsal.hpp"

namespace rehearse {

namespace {

struct Chain {
  std::vector<Time> alone, busy;  // of ops: until they end, until their stream is free
  std::vector<std::uint32_t> lane;
  std::vector<Time> begin, left;  // at the earliest; from there to the end of all, at least

  Chain(const Program& program, const StreamTable& streams)
      : lane(program.size()), begin(program.size()) {
    for (std::size_t i = 0; i < program.size(); ++i) {
      const Program::Op& op = program[static_cast<OpId>(i)];
      lane[i] = streams.number(op.rank, op.stream);
    }
  }

  void follow(const Program& program, std::size_t lanes) {
    std::vector<Time> free(lanes);
    for (std::size_t i = 0; i < program.size(); ++i) {
      begin[i] = free[lane[i]];
      for (const OpId input : program.after(static_cast<OpId>(i))) {
        ASSERT(index(input) < i);  // collectives are emitted in such an order
        begin[i] = std::max(begin[i], begin[index(input)] + alone[index(input)]);
      }
      free[lane[i]] = begin[i] + busy[i];
    }
    left = alone;
    std::vector<Time> after(lanes);  // what is left when the next op of a lane begins
    for (std::size_t i = program.size(); i-- > 0;) {
      left[i] = std::max(left[i], busy[i] + after[lane[i]]);
      after[lane[i]] = left[i];
      for (const OpId input : program.after(static_cast<OpId>(i)))
        left[index(input)] = std::max(left[index(input)], alone[index(input)] + left[i]);
    }
  }

  /// Whether all rounds are like the first, and wait for nothing outside themselves, which only the
  /// first may.
  bool is_plain(const Program& program, const Emission::Rounds& rounds) const {
    const std::size_t first = index(rounds.first);
    for (std::size_t i = first + rounds.width; i < first + rounds.width * rounds.count; ++i) {
      const std::size_t twin = i - rounds.width;
      const std::size_t round = first + (i - first) / rounds.width * rounds.width;
      if (lane[i] != lane[twin] || alone[i] != alone[twin] || busy[i] != busy[twin]) return false;
      for (const OpId input : program.after(static_cast<OpId>(i)))
        if (index(input) < round) return false;
    }
    return true;
  }
};

}  // namespace

bool CollectiveRehearsal::finds_room() const {
  std::vector<std::uint64_t> streams;
  for (const Hop& hop : plan_.pattern.hops) streams.push_back(stream_key(hop));
  const std::vector<bool> is_short =
      short_links(*paths_, CrossedLinks(*paths_, topology_), streams, topology_);
  return std::none_of(is_short.begin(), is_short.end(), [](bool one) { return one; });
}

CollectiveRehearsal::Least CollectiveRehearsal::least(Bytes size, std::uint16_t protocol) const {
  constexpr std::size_t few = 4;
  Program program;
  const Emission::Rounds which = emit(program, size, protocol, few);
  const StreamTable streams(program);
  Chain chain(program, streams);
  for (const Program::Op& op : program.ops()) {
    const Transfer& transfer = program.transfer(op);
    const Connection& connection = program[transfer.connection];
    const Protocol& spoken = protocol_of(program, connection);
    const auto hop = static_cast<ConnectionId>(index(fold_->kept()[index(transfer.connection)]));
    BytesPerSecond rate = paths_->rate_alone(hop);
    for (const BytesPerSecond limit : {connection.limit, spoken.limit})
      if (limit.count() > 0) rate = std::min(rate, limit);
    const Time latency = paths_->latency(hop) + overhead_of(spoken, paths_->network(hop));
    const Time bytes = transfer.wire == Bytes{0} ? Time{} : Time::round(transfer.wire / rate);
    chain.alone.push_back(latency + bytes);
    chain.busy.push_back(connection.posted ? bytes : latency + bytes);
  }
  chain.follow(program, streams.size());
  Least least;
  for (std::size_t i = 0; i < program.size(); ++i)
    least.time = std::max(least.time, chain.begin[i] + chain.left[i]);
  const std::size_t rounds = plan_.rounds(pieces(size, protocol));
  // Pieces that go through several levels are not padded to one length: later ones may be shorter.
  if (which.count > 0 && rounds > which.count && !plan_.pattern.pipelined) {
    std::vector<Time> a_round(streams.size());
    const std::size_t first = index(which.first), last = first + which.width * (which.count - 1);
    for (std::size_t k = first; k < first + which.width; ++k)
      a_round[chain.lane[k]] += chain.busy[k];
    for (std::size_t k = 0; k < which.width; ++k)
      least.time = std::max(
          least.time, chain.begin[first + k] +
                          static_cast<std::int64_t>(rounds - 1) * a_round[chain.lane[first + k]] +
                          chain.left[last + k]);
    least.is_exact = has_room_ && chain.is_plain(program, which);
  }
  least.time += launch(protocol);
  least.transfers = program.transfer_count();
  return least;
}

}  // namespace rehearse
