// Lower bounds of collectives, true for every algorithm in our model: a rank may talk to all others
// at once, links carry their bandwidth, a message takes its path's latency. S is the data of one
// rank, n the ranks, P a place (one rank, or one server with all its ranks) with m members inside.
//
// Bytes that must cross P's border (m' = n - m members are outside, m' > 0):
//   all_reduce      in S, out S          each byte of the result depends on both sides
//   reduce_scatter  in S·m/n, out S·m'/n the sums of a side's parts need the other side's values
//   all_gather      in S·m'/n, out S·m/n the parts of the other side, at least once
//   broadcast       in S where the root is not, out S where it is
//   reduce          out S where the root is not, in S where it is
//   all_to_all      in and out S·m·m'/n  a part of its own for each pair
//   send_recv       S for each neighbour pair of the group that the border separates
//
// Bytes that must leave (or enter) all places together, when no switch adds or copies on the way:
// k places that each hold a member. Nobody has a byte of the result before k-1 messages have come
// together; then each of the other k-1 completes only by receiving one more.
//   all_reduce                            2(k-1)S   (Patarasuk and Yuan 2009, theorem 1)
//   reduce_scatter, all_gather, broadcast, reduce   (k-1)S
// A switch that reduces (Device::reduces) makes one message of many, so the totals are void for
// places it can serve: for ranks if any switch reduces, for servers if one outside of them does.
//
// Latency: data of one member must reach another, through any relays; the shortest way by latency
// over all links is no longer than what any route takes. Any one pair gives a valid bound; the
// farthest from one member, then the farthest from that one, come close to the largest.
#include "sim/engine/collective_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

// Parts are whole elements of at most 8 bytes, and one part takes the tail: a part is within 16
// bytes of S/n. Each bound gives that much away for each part it counts.
constexpr double part_rounding = 16;

// Links by the device they leave (or enter): those of device d are at [begin[d], begin[d + 1]).
struct Adjacency {
  std::vector<std::uint32_t> begin;
  std::vector<LinkId> links;

  Adjacency(const Topology& topology, bool forward) : begin(topology.devices().size() + 2) {
    const auto device = [&](const Link& link) {
      return index(forward ? link.source : link.target);
    };
    for (const Link& link : topology.links()) ++begin[device(link) + 2];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    links.resize(topology.links().size());
    for (std::size_t l = 0; l < links.size(); ++l)
      links[begin[device(topology.links()[l]) + 1]++] = static_cast<LinkId>(l);
  }
};

// Dijkstra over link latencies, forward or against the links.
std::vector<Time> distances(const Topology& topology, DeviceId from, bool forward) {
  const Adjacency adjacency{topology, forward};
  std::vector<Time> distance(topology.devices().size(), Time::never());
  using Entry = std::pair<Time, DeviceId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance[index(from)] = Time{};
  queue.emplace(Time{}, from);
  while (!queue.empty()) {
    const auto [time, device] = queue.top();
    queue.pop();
    if (time > distance[index(device)]) continue;
    for (std::size_t l = adjacency.begin[index(device)]; l < adjacency.begin[index(device) + 1];
         ++l) {
      const Link& link = topology[adjacency.links[l]];
      const DeviceId next = forward ? link.target : link.source;
      if (time + link.latency >= distance[index(next)]) continue;
      distance[index(next)] = time + link.latency;
      queue.emplace(distance[index(next)], next);
    }
  }
  return distance;
}

struct Farthest {
  Rank rank{};
  Time distance;
};

Farthest farthest(const Topology& topology, std::span<const Rank> group, Rank from, bool forward) {
  const std::vector<Time> distance = distances(topology, topology.device_of(from), forward);
  Farthest out{from, Time{}};
  for (const Rank rank : group) {
    const Time there = distance[index(topology.device_of(rank))];
    if (there != Time::never() && there > out.distance) out = {rank, there};
  }
  return out;
}

Time longest_way(CollectiveKind kind, std::span<const Rank> group, const Topology& topology,
                 std::uint32_t root) {
  using enum CollectiveKind;
  if (kind == send_recv)
    return farthest(topology, group.subspan(1, 1), group.front(), true).distance;
  if (kind == broadcast) return farthest(topology, group, group[root], true).distance;
  if (kind == reduce) return farthest(topology, group, group[root], false).distance;
  const Farthest first = farthest(topology, group, group.front(), true);
  const Farthest second = farthest(topology, group, first.rank, true);
  return std::max(first.distance, second.distance);
}

bool in_parts(CollectiveKind kind) {
  using enum CollectiveKind;
  return kind == reduce_scatter || kind == all_gather || kind == all_to_all;
}

// The members' neighbours in group order, for send_recv: i sends to i + 1.
template <class Place, class PlaceOf>
void count_leaving(std::span<const Rank> group, std::vector<Place>& places, PlaceOf place_of) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::size_t here = place_of(i), there = place_of((i + 1) % group.size());
    if (here != there) ++places[here].leaving;
  }
}

}  // namespace

CollectiveBounds::CollectiveBounds(CollectiveKind kind, std::span<const Rank> group,
                                   const Topology& topology, std::uint32_t root)
    : kind_{kind}, ranks_{group.size()} {
  if (ranks_ < 2) return;
  ASSERT(root < ranks_);
  latency_ = longest_way(kind, group, topology, root);

  constexpr std::size_t nowhere = SIZE_MAX;
  std::vector<std::size_t> rank_at(topology.devices().size(), nowhere);
  std::vector<Place> ranks(ranks_), nodes(topology.node_count());
  for (std::size_t i = 0; i < ranks_; ++i) {
    const DeviceId device = topology.device_of(group[i]);
    rank_at[index(device)] = i;
    ranks[i].members = 1;
    ranks[i].has_root = i == root;
    const NodeId node = topology[device].node;
    if (node == no_node) continue;
    ++nodes[index(node)].members;
    nodes[index(node)].has_root |= i == root;
  }
  for (const Link& link : topology.links()) {
    const double rate = link.bandwidth.count();
    const std::size_t source = rank_at[index(link.source)], target = rank_at[index(link.target)];
    if (source != nowhere) ranks[source].out += rate;
    if (target != nowhere) ranks[target].in += rate;
    const NodeId from = topology[link.source].node, to = topology[link.target].node;
    if (from == to) continue;
    if (from != no_node) nodes[index(from)].out += rate;
    if (to != no_node) nodes[index(to)].in += rate;
  }
  const auto node_of = [&](std::size_t i) {
    return index(topology[topology.device_of(group[i])].node);
  };
  const bool all_in_nodes = std::all_of(group.begin(), group.end(), [&](Rank r) {
    return topology[topology.device_of(r)].node != no_node;
  });
  count_leaving(group, ranks, [](std::size_t i) { return i; });
  if (all_in_nodes) count_leaving(group, nodes, node_of);

  bool any_reduces = false, fabric_reduces = false;
  for (const Device& device : topology.devices()) {
    any_reduces |= device.reduces;
    fabric_reduces |= device.reduces && device.node == no_node;
  }
  for (std::size_t i = 0; i < ranks_; ++i)
    add_place(ranks[i], topology[topology.device_of(group[i])].name);
  add_totals(ranks, any_reduces, "all ranks");
  if (!all_in_nodes) return;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    add_place(nodes[node], fmt::format("node {}", node));
  add_totals(nodes, fabric_reduces, "all nodes");
}

CollectiveBounds::Demand CollectiveBounds::out_of(const Place& place) const {
  using enum CollectiveKind;
  const double n = static_cast<double>(ranks_), inside = place.members, outside = n - inside;
  switch (kind_) {
    case all_reduce:
      return {1, 0};
    case reduce_scatter:
      return {outside / n, ranks_ - place.members};
    case all_gather:
      return {inside / n, place.members};
    case broadcast:
      return {place.has_root ? 1.0 : 0.0, 0};
    case reduce:
      return {place.has_root ? 0.0 : 1.0, 0};
    case all_to_all:
      return {inside * outside / n, place.members * (ranks_ - place.members)};
    case send_recv:
      return {static_cast<double>(place.leaving), 0};
  }
  return {};
}

// What enters a place is what leaves it in the mirrored collective, time reversed.
CollectiveBounds::Demand CollectiveBounds::into(const Place& place) const {
  using enum CollectiveKind;
  const double n = static_cast<double>(ranks_), inside = place.members, outside = n - inside;
  switch (kind_) {
    case reduce_scatter:
      return {inside / n, place.members};
    case all_gather:
      return {outside / n, ranks_ - place.members};
    case broadcast:
      return {place.has_root ? 0.0 : 1.0, 0};
    case reduce:
      return {place.has_root ? 1.0 : 0.0, 0};
    case all_reduce:
    case all_to_all:
    case send_recv:  // as many neighbours lead into a place of a closed ring as out of it
      return out_of(place);
  }
  return {};
}

void CollectiveBounds::add_place(const Place& place, const std::string& name) {
  if (place.members == 0 || place.members == ranks_) return;
  add(out_of(place), place.out, "out of " + name);
  add(into(place), place.in, "into " + name);
}

void CollectiveBounds::add_totals(std::span<const Place> places, bool may_combine,
                                  const std::string& name) {
  using enum CollectiveKind;
  if (may_combine || kind_ == all_to_all || kind_ == send_recv) return;
  double held = 0, out = 0, in = 0;
  for (const Place& place : places) {
    if (place.members == 0) continue;
    ++held;
    out += place.out;
    in += place.in;
  }
  if (held < 2) return;
  const Demand all{(kind_ == all_reduce ? 2 : 1) * (held - 1), 0};
  add(all, out, "out of " + name);
  add(all, in, "into " + name);
}

// Only the narrowest of alike places can limit, so thousands of ranks leave a handful of cuts.
void CollectiveBounds::add(Demand demand, double rate, std::string place) {
  if (demand.share <= 0 || rate <= 0) return;
  const double padding = part_rounding * static_cast<double>(demand.parts);
  for (Cut& cut : cuts_) {
    if (cut.share != demand.share || cut.padding != padding) continue;
    if (rate < cut.rate) cut.rate = rate, cut.place = std::move(place);
    return;
  }
  cuts_.push_back({demand.share, padding, rate, std::move(place)});
}

CollectiveBound CollectiveBounds::at(Bytes size) const {
  CollectiveBound bound;
  if (ranks_ < 2 || size <= Bytes{0}) return bound;
  const double bytes = static_cast<double>(size.count());
  // With less than an element for each rank, some pairs have nothing to say to each other.
  const bool all_have_parts = bytes > part_rounding * static_cast<double>(ranks_);
  if (all_have_parts || !in_parts(kind_)) bound.latency = latency_;
  double longest = 0;
  for (const Cut& cut : cuts_) {
    const double time = (cut.share * bytes - cut.padding) / cut.rate;
    if (time <= longest) continue;
    longest = time;
    bound.limiting = cut.place;
  }
  bound.bandwidth = Time::round(Seconds{longest});
  return bound;
}

void CollectiveBounds::check(Bytes size, Time time) const {
  const CollectiveBound bound = at(size);
  // Each of the dependent steps of an algorithm may have gained a tick by rounding.
  const Time least = bound.least();
  const auto slack = static_cast<std::int64_t>(1e-6 * static_cast<double>(least.ps())) +
                     2 * static_cast<std::int64_t>(ranks_);
  if (time + Time::picoseconds(slack) >= least) return;
  const std::string why = bound.latency > bound.bandwidth
                              ? std::string{"its data must travel that far"}
                              : fmt::format("its bytes must go {} first", bound.limiting);
  throw CheckFailed(
      fmt::format("impossible result: {} of {} bytes on {} ranks in {} ps, but it needs {} ps: {}",
                  to_string(kind_), size.count(), ranks_, time.ps(), least.ps(), why));
}

CollectiveBound collective_lower_bound(CollectiveKind kind, std::span<const Rank> group, Bytes size,
                                       const Topology& topology, std::uint32_t root) {
  return CollectiveBounds{kind, group, topology, root}.at(size);
}

}  // namespace rehearse
