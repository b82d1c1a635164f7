// What each connection of a Program crosses on a Topology: both simulators start from this table.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/program/program.hpp"
#include "topology/routing.hpp"

namespace rehearse {

/// What a protocol adds to the latency of a route, of which `network` crosses one: 0 or 1, or what
/// a ring evens out.
inline Time overhead_of(const Protocol& protocol, double network) {
  if (network == 0) return protocol.overhead;
  return protocol.overhead + Time::picoseconds(static_cast<std::int64_t>(
                                 network * static_cast<double>(protocol.network_overhead.ps())));
}

/// By ConnectionId. A transfer occupies all its crossings at one rate, between two waits:
///
///   plain   |── lead ──|── bytes ──|             lead + flight = latency; a stream is held until
///   posted             |── bytes ──|── flight ──|     the bytes are through
///   bursts  |── lead ──|── bytes ──|── gap ──|── bytes ──|     folded ones only
class Paths {
 public:
  using Crossing = FoldedPath::Crossing;

  /// Follows Program::folded where the program is folded, the routing's routes elsewhere.
  Paths(const Program& program, Routing& routing);

  std::size_t size() const { return latency_.size(); }
  std::span<const Crossing> all_crossings() const { return crossings_; }
  std::span<const Crossing> crossings(ConnectionId id) const {
    return std::span{crossings_}.subspan(begin_[index(id)],
                                         begin_[index(id) + 1] - begin_[index(id)]);
  }
  /// Of the longest branch, with the protocol's overhead per message.
  Time latency(ConnectionId id) const { return latency_[index(id)]; }
  /// The part of the latency that passes before the first byte moves: all, or none when posted.
  Time lead(ConnectionId id) const { return latency_[index(id)] - flight_[index(id)]; }
  /// The part that passes after the last byte has left, while the stream is free again.
  Time flight(ConnectionId id) const { return flight_[index(id)]; }
  bool any_flight() const { return any_flight_; }
  /// Whether its route crosses a network: 0 or 1, or as a ring has evened it out.
  double network(ConnectionId id) const { return network_[index(id)]; }
  /// In how many bursts the bytes move, and what passes between two of them.
  std::uint32_t bursts(ConnectionId id) const { return any_gap_ ? bursts_[index(id)] : 1; }
  Time gap(ConnectionId id) const { return any_gap_ ? gap_[index(id)] : Time{}; }
  bool any_gap() const { return any_gap_; }
  /// The protocol's limit, the connection's, the narrowest link (over its weight): the rate alone.
  BytesPerSecond rate_alone(ConnectionId id) const { return rate_alone_[index(id)]; }
  /// Lowers a connection's rate alone; for plans that pace what they have just laid out.
  void limit(ConnectionId id, BytesPerSecond rate) {
    rate_alone_[index(id)] = std::min(rate_alone_[index(id)], rate);
  }
  /// Gives a connection another latency than its route's, of paths without protocols.
  void even_out(ConnectionId id, Time latency, double network) {
    latency_[index(id)] = latency;
    network_[index(id)] = network;
    if (flight_[index(id)] > Time{}) flight_[index(id)] = latency;
  }

 private:
  std::vector<std::uint32_t> begin_{0};
  std::vector<Crossing> crossings_;
  std::vector<Time> latency_, flight_, gap_;
  std::vector<double> network_;
  std::vector<std::uint32_t> bursts_;
  bool any_flight_ = false, any_gap_ = false;
  std::vector<BytesPerSecond> rate_alone_;
};

/// Numbers the links that a program crosses, from 0 on, so that tables need not be as long as a
/// machine of 16,384 GPUs has links when a folded program crosses a few.
class CrossedLinks {
 public:
  CrossedLinks(const Paths& paths, const Topology& topology);
  std::size_t size() const { return links_.size(); }
  LinkId operator[](std::size_t number) const { return links_[number]; }
  /// The link must be one that is crossed.
  std::uint32_t number(LinkId link) const {
    return dense_.empty() ? sparse_.at(link) : dense_[index(link)];
  }

 private:
  std::vector<LinkId> links_;
  std::vector<std::uint32_t> dense_;
  std::unordered_map<LinkId, std::uint32_t> sparse_;
};

/// How long an op is still under way when its stream is free for the next one. Asked for every op
/// of programs that post nothing, so those are told apart first.
inline Time flight_of(const Program& program, const Paths& paths, const Program::Op& op) {
  if (!paths.any_flight() || op.kind != WorkKind::transfer) return Time{};
  return paths.flight(program.transfer(op).connection);
}

/// The protocol of a connection; a Program without any has one plain protocol.
const Protocol& protocol_of(const Program& program, const Connection& connection);

}  // namespace rehearse
