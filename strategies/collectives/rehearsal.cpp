// Rounds that repeat.
//
// The rounds of a ring or pipeline are emitted alike: op k of round j has the same links, bytes and
// edges as op k of round j+1. Say that from round a on, and before the emitted rounds run out,
// every op begins and ends exactly D later than its twin a round before, for at least as many
// rounds as are under way at once. Then the state of the machine (which transfers are live, how
// much of each is left, what waits for what) repeats with period D, since everything in it began
// within those rounds; and whatever follows, more rounds or the last one's way to the end, is the
// same as before, shifted by D. So R rounds take T(K) + (R - K) · D, exactly, for any K past that
// point.
#include "strategies/collectives/rehearsal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/error.hpp"
#include "strategies/collectives/nccl_limits.hpp"
#include "strategies/collectives/pace.hpp"
#include "topology/formats/libraries.hpp"

namespace rehearse {

namespace {

constexpr std::size_t all_rounds = std::numeric_limits<std::size_t>::max();

/// The part of a timeline that consists of rounds.
class Rounds {
 public:
  Rounds(const Timeline& timeline, const Emission::Rounds& which)
      : spans_{std::span{timeline.spans}.subspan(index(which.first), which.width * which.count)},
        rounds_{which.count},
        width_{which.width} {}

  /// The period D, if the rounds provably repeat.
  std::optional<Time> period() const {
    if (rounds_ < 4 || width_ == 0) return std::nullopt;
    const std::size_t end = undisturbed_end();
    if (end < 3) return std::nullopt;
    const Time period = at(end - 1, 0).end - at(end - 2, 0).end;
    if (period <= Time{}) return std::nullopt;
    std::size_t begin = end - 1;
    while (begin > 0 && repeats(begin, period)) --begin;
    const std::size_t proven = end - 1 - begin;
    const auto under_way = static_cast<std::size_t>(lasts(end - 1).ps() / period.ps()) + 2;
    if (proven < under_way + 1) return std::nullopt;
    return period;
  }

 private:
  const Timeline::Span& at(std::size_t round, std::size_t op) const {
    return spans_[round * width_ + op];
  }

  bool repeats(std::size_t round, Time period) const {
    for (std::size_t k = 0; k < width_; ++k) {
      const Timeline::Span &now = at(round, k), &before = at(round - 1, k);
      if (now.begin - before.begin != period || now.end - before.end != period) return false;
    }
    return true;
  }

  Time lasts(std::size_t round) const {
    Time begin = Time::never(), end;
    for (std::size_t k = 0; k < width_; ++k) {
      begin = std::min(begin, at(round, k).begin);
      end = std::max(end, at(round, k).end);
    }
    return end - begin;
  }

  // Rounds that ended before any lane began its last round: what comes later may be quicker for
  // want of the next round's transfers.
  std::size_t undisturbed_end() const {
    Time first_gap = Time::never();
    for (std::size_t k = 0; k < width_; ++k)
      first_gap = std::min(first_gap, at(rounds_ - 1, k).begin);
    std::size_t end = rounds_;
    const auto ends_later = [&](std::size_t round) {
      for (std::size_t k = 0; k < width_; ++k)
        if (at(round, k).end > first_gap) return true;
      return false;
    };
    while (end > 0 && ends_later(end - 1)) --end;
    return end;
  }

  std::span<const Timeline::Span> spans_;
  std::size_t rounds_, width_;
};

Fold fold_for(const Pattern& pattern, const Paths& paths, const Topology& topology, Detail detail) {
  return detail == Detail::folded ? find_fold(pattern, paths, topology) : no_fold(pattern);
}

// LL waits for flags line by line: NCCL knows how much that carries at most, over all channels.
void limit_ll(CollectivePlan& plan, const CollectiveShape& shape, const Topology& topology) {
  if (topology.library.name.empty() || shape.group.empty()) return;
  const auto channels = static_cast<double>(plan.pipeline.shares);
  for (Protocol& protocol : plan.pattern.protocols)
    if (protocol.name == "ll")
      protocol.limit =
          BytesPerSecond{1e9 * library_table().ll_rate * nccl_most_in_ll(shape, topology) /
                         protocol.payload / channels};
}

// How many of the shortest make a chunk of NCCL's, where a way of `depth` hops is to be filled and
// the data are so many of the shortest: 512 KiB on each channel, halved down to 32 KiB while they
// are fewer than fill it (NCCL 2.19 enqueue.cc, computeColl for trees).
double chunk_of(double number, double depth) {
  constexpr struct { double times, shortest; } halvings[] = {{8, 4}, {4, 2}, {1, 1}};
  double chunk = 16;
  for (const auto& [times, shortest] : halvings)
    while (number / chunk < times * depth && chunk > shortest) chunk /= 2;
  return chunk;
}

}  // namespace

CollectiveBuffers buffers_for(Bytes size) {
  return {{Buffer{0}, Bytes{0}, size}, {Buffer{1}, Bytes{0}, size}, Buffer{2}};
}

CollectiveRehearsal::CollectiveRehearsal(const Algorithm& algorithm, CollectiveShape shape,
                                         Routing& routing, Detail detail)
    : algorithm_{algorithm},
      topology_{routing.topology()},
      shape_{std::move(shape)},
      detail_{detail} {
  if (const auto refusal = algorithm.refusal(shape_, routing.topology()))
    throw InputError(fmt::format("algorithm '{}' cannot do this {}: {}", algorithm.name,
                                 to_string(shape_.kind), *refusal));
  plan_ = algorithm.plan(shape_, routing);
  plan_.pattern.protocols = topology_.protocols;
  Paths& paths = paths_.emplace(connections_of(plan_.pattern), routing);
  if (topology_.library.one_at_a_time)
    await_messages(plan_.pattern, paths);
  else if (!topology_.library.name.empty())
    even_out_rings(plan_.pattern, paths);
  if (plan_.paced) pace(plan_.pattern, paths, topology_);
  fold_.emplace(fold_for(plan_.pattern, paths, routing.topology(), detail));
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t h = 0; h < paths.size(); ++h) {
    alpha_ = std::max(alpha_, paths.latency(static_cast<ConnectionId>(h)));
    crosses_network_ = crosses_network_ || paths.network(static_cast<ConnectionId>(h)) > 0;
    lowest = std::min(lowest, paths.rate_alone(static_cast<ConnectionId>(h)).count());
  }
  beta_ = BytesPerSecond{lowest};
  limit_ll(plan_, shape_, topology_);
  has_room_ = finds_room();
}

// How many pieces C a pipeline of depth d takes: T(C) = d alpha + (d-1+C) s / (C beta), where s is
// one way's share of the data, has (d-1) s / (C beta) for filling the pipeline. Pieces cost nothing
// here, so C is as great as brings that down to a percent of the rest. One hop alone gains nothing.
// A library that moves whole chunks in its protocol "simple" has no more pieces than those; nor has
// a machine whose calibration says from which length on a message is worth its trouble.
std::size_t CollectiveRehearsal::pieces(Bytes size, std::uint16_t protocol) const {
  constexpr double filling = 0.01;
  double most = 256;
  if (plan_.pipeline.depth == 0 || size == Bytes{0}) return 1;
  const auto depth = static_cast<double>(plan_.pipeline.depth);
  const bool is_simple =
      topology_.protocols.empty() ||
      (protocol < topology_.protocols.size() && topology_.protocols[protocol].name == "simple");
  if (topology_.library.piece > Bytes{0} && is_simple) {
    const double shortest = static_cast<double>(topology_.library.piece.count()) *
                            static_cast<double>(plan_.pipeline.chunks);
    const double number = static_cast<double>(size.count()) / shortest;
    const double chunks = plan_.pipeline.is_fixed ? number : number / chunk_of(number, depth / 2);
    // A calibrated length is the least; of a library's chunks the last may be short.
    most = std::clamp(topology_.library.name.empty() ? number : std::ceil(chunks), 1.0, most);
  }
  const double share =
      static_cast<double>(size.count()) / static_cast<double>(plan_.pipeline.shares);
  const double sending = share / beta_.count();
  const double rest = depth * alpha_.seconds().count() + sending;
  if (rest == 0) return 1;  // no hop at all
  const double enough = (depth - 1) * sending / (filling * rest);
  const double elements = std::max(1.0, share / 4);
  return static_cast<std::size_t>(std::clamp(std::ceil(enough), 1.0, std::min(most, elements)));
}

Time CollectiveRehearsal::launch(std::uint16_t protocol) const {
  if (plan_.pattern.hops.empty() || protocol >= topology_.protocols.size()) return Time{};
  const Time start = topology_.protocols[protocol].launch;
  return crosses_network_ ? start + topology_.library.network_launch : start;
}

Emission::Rounds CollectiveRehearsal::emit(Program& program, Bytes size, std::uint16_t protocol,
                                           std::size_t rounds) const {
  const std::size_t count = pieces(size, protocol);
  const std::size_t all = plan_.rounds(count);
  if (all > 0) {
    const std::size_t ops = std::min(rounds, all) * fold_->kept().size();
    program.reserve(ops, ops);
  }
  Emission out(program, plan_.pattern, *fold_, {.protocol = protocol});
  plan_.emit(out, buffers_for(size), count, rounds);
  return out.rounds();
}

Emission CollectiveRehearsal::emit_into(Program& program, const CollectiveBuffers& buffers,
                                        const Emission::Where& where) const {
  Emission out(program, plan_.pattern, *fold_, where);
  plan_.emit(out, buffers, pieces(buffers.data.size, where.protocol), all_rounds);
  return out;
}

Program CollectiveRehearsal::program(Bytes size, std::uint16_t protocol) const {
  Program program;
  emit(program, size, protocol, all_rounds);
  return program;
}

std::uint64_t CollectiveRehearsal::most_transfers(Bytes size) const {
  return fold_->kept().size() *
         std::max<std::uint64_t>(plan_.transfers, plan_.rounds(pieces(size, UINT16_MAX)));
}

std::vector<double> CollectiveRehearsal::carried(Bytes size, std::uint16_t protocol) const {
  // A few rounds tell what each hop carries in one; the others are alike.
  const std::size_t rounds = plan_.rounds(pieces(size, protocol));
  Program program;
  const Emission::Rounds which = emit(program, size, protocol, 4);
  const double repeats =
      which.count == 0 ? 1 : static_cast<double>(rounds) / static_cast<double>(which.count);
  std::vector<double> by_place(fold_->kept().size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Transfer& transfer = program.transfer(program.ops()[i]);
    const bool in_rounds = which.count > 0 && i >= index(which.first) &&
                           i < index(which.first) + which.width * which.count;
    by_place[index(transfer.connection)] +=
        static_cast<double>(transfer.wire.count()) * (in_rounds ? repeats : 1);
  }
  std::vector<double> by_hop(plan_.pattern.hops.size());
  for (std::size_t h = 0; h < by_hop.size(); ++h)
    by_hop[h] = by_place[fold_->place(static_cast<HopId>(h))];
  return by_hop;
}

BusiestLink CollectiveRehearsal::busiest(Bytes size, std::uint16_t protocol, Time time) const {
  const std::vector<double> by_hop = carried(size, protocol);
  std::vector<double> bytes(topology_.links().size());
  for (std::size_t h = 0; h < by_hop.size(); ++h)
    for (const auto& crossing : paths_->crossings(static_cast<ConnectionId>(h)))
      bytes[index(crossing.link)] += by_hop[h];
  BusiestLink most;
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    if (bytes[l] == 0 || time == Time{}) continue;
    const double load = bytes[l] / topology_.links()[l].bandwidth.count() / time.seconds().count();
    if (load > most.load) most = {static_cast<LinkId>(l), load};
  }
  return most;
}

namespace {

CollectiveResult result_of(const Program& program, const Timeline& timeline) {
  return {timeline.makespan, program.transfer_count(), timeline.events};
}

}  // namespace

CollectiveResult CollectiveRehearsal::run_rounds(Bytes size, Executor& engine,
                                                 std::uint16_t protocol, std::size_t rounds) const {
  // A difference between hops has gone round all of them before the rounds repeat.
  const std::size_t first = std::max<std::size_t>(16, 4 * roles());
  for (std::size_t simulated = first; simulated < rounds; simulated *= 2) {
    Program cut_short;
    const Emission::Rounds which = emit(cut_short, size, protocol, simulated);
    if (which.count != simulated) break;
    const Timeline timeline = engine.run(cut_short);
    const auto period = Rounds(timeline, which).period();
    if (!period) continue;
    CollectiveResult result = result_of(cut_short, timeline);
    result.time += static_cast<std::int64_t>(rounds - simulated) * *period;
    return result;
  }
  const Program whole = program(size, protocol);
  return result_of(whole, engine.run(whole));
}

CollectiveResult CollectiveRehearsal::run(Bytes size, Executor& engine, std::uint16_t protocol) {
  if (detail_ == Detail::transfers) {
    CollectiveResult result = run_rounds(size, engine, protocol, 0);
    result.time += launch(protocol);
    return result;
  }
  const auto key = std::pair{plan_.key(size), protocol};
  {
    const std::lock_guard lock(guard_);
    const auto known = remembered_.find(key);
    if (known != remembered_.end()) {
      CollectiveResult result = known->second;
      result.transfers = result.events = 0;
      return result;
    }
  }
  CollectiveResult result;
  Least known_exactly;  // pipelines that are paced need no events
  if (has_room_ && plan_.pipeline.depth > 0) known_exactly = least(size, protocol);
  if (known_exactly.is_exact) {
    result = {known_exactly.time, known_exactly.transfers, known_exactly.transfers};
  } else {
    result = run_rounds(size, engine, protocol, plan_.rounds(pieces(size, protocol)));
    result.time += launch(protocol);
  }
  const std::lock_guard lock(guard_);
  remembered_.emplace(key, result);
  return result;
}

}  // namespace rehearse
