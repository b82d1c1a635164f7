// Two levels instead of one big search. A node is small, and thousands of nodes are alike: what is
// inside is searched once per shape of node. The fabric between them is searched once per switch
// that traffic arrives at. A route is then the cheapest of
//
//   source ──inside──▶ exit link ──fabric──▶ entry link ──inside──▶ target
//
// and equals what one Dijkstra over everything would find, because entering a node costs more than
// anything else: a shortest route enters one node, the target's, unless there is no such way. For
// that case, and for it alone, there is the search over everything.
#include "topology/routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "topology/node_shapes.hpp"

namespace rehearse {

namespace {

using Route = std::vector<LinkId>;

// A choice of gates: links by which a route leaves the source's node and enters the target's.
// Null where a route needs none.
struct Join {
  const Crossing* exit = nullptr;
  const Crossing* entry = nullptr;
};

}  // namespace

struct Routing::State {
  explicit State(const Topology& t) : topology{t}, shapes{t} {}

  const Topology& topology;
  NodeShapes shapes;
  std::optional<ShortestPaths> everything;
  // Of the last question; kept to spare allocations.
  std::vector<Join> joins;
  std::vector<const Crossing*> exits, entries;
  std::vector<std::uint32_t> arcs;

  ShortestPaths& all_paths();

  void find_joins(DeviceId source, DeviceId target);
  Cost beyond(const Crossing& cable, DeviceId target);
  bool is_closed(std::uint32_t outer, DeviceId end) const;
  Join choose(DeviceId source, DeviceId target, std::size_t channel);
  std::size_t spread(DeviceId device, std::size_t channel, std::size_t ways) const;
  bool walk(std::size_t group, std::uint32_t from, std::uint32_t to, RouteSpread spread,
            Route& route);
  bool stay(DeviceId source, DeviceId target, std::size_t channel, Route& route);
  void cross(DeviceId source, DeviceId target, Join join, std::size_t channel, Route& route);
  bool search(DeviceId source, DeviceId target, std::size_t channel, Route& route);

  std::vector<Route> all_within(DeviceId from, DeviceId to, std::size_t most);
  std::vector<Route> all_across(DeviceId source, DeviceId target, Join join, std::size_t most);
};

// Fills `joins` with all cheapest pairs of gates. Gates come cheapest first, so the loops end as
// soon as the gates alone cost more than the best whole route: mostly after a pair or two.
void Routing::State::find_joins(DeviceId source, DeviceId target) {
  joins.clear();
  const std::size_t from = shapes.group_of(source), to = shapes.group_of(target);
  Cost best = Cost::infinite();
  const auto offer = [&](const Cost& cost, Join join) {
    if (cost > best || cost == Cost::infinite()) return;
    if (cost < best) joins.clear();
    best = cost;
    joins.push_back(join);
  };
  ShortestPaths& fabric = shapes.paths(shapes.fabric());
  const std::span<const Gate> gates = shapes.entries_to(target);
  for (const Gate& exit : shapes.exits_from(source)) {
    if (exit.cost > best) break;
    const Crossing* leave = exit.place == nowhere ? nullptr : &shapes.exits(from)[exit.place];
    const std::uint32_t out = leave ? leave->outer : shapes.local(source);
    if (out == nowhere) {
      offer(exit.cost + beyond(*leave, target), {leave, nullptr});
      continue;
    }
    if (leave && is_closed(out, target)) continue;
    for (const Gate& entry : gates) {
      if (exit.cost + entry.cost > best) break;
      const Crossing* enter = entry.place == nowhere ? nullptr : &shapes.entries(to)[entry.place];
      const std::uint32_t in = enter ? enter->outer : shapes.local(target);
      if (in == nowhere || (enter && is_closed(in, source))) continue;
      offer(exit.cost + fabric.distance(out, in) + entry.cost, {leave, enter});
    }
  }
}

// From the far end of a cable that goes straight from node to node.
Cost Routing::State::beyond(const Crossing& cable, DeviceId target) {
  const DeviceId out = topology[cable.link].target;
  const std::size_t to = shapes.group_of(target);
  if (shapes.group_of(out) != to) return Cost::infinite();
  if (topology[out].kind == DeviceKind::memory && out != target) return Cost::infinite();
  return shapes.paths(to).distance(shapes.local(out), shapes.local(target));
}

// Memory in the fabric may end a route; it does not forward one.
bool Routing::State::is_closed(std::uint32_t outer, DeviceId end) const {
  const DeviceId d = shapes.devices(shapes.fabric())[outer];
  return d != end && topology[d].kind == DeviceKind::memory;
}

// Among equal gates the devices of a node spread over the exits by their own number, and the
// target's number chooses the entry. Both are local, so equal nodes behave equally. Where a device
// has several of its own, channels take them in turn: of 4 that two GPUs share, 0 and 2, 1 and 3.
std::size_t Routing::State::spread(DeviceId device, std::size_t channel, std::size_t ways) const {
  const std::size_t each = shapes.exits_each(device);
  const std::size_t stride = each > 1 ? std::max<std::size_t>(1, ways / each) : 1;
  return (shapes.ordinal(device) + channel * stride) % ways;
}

Join Routing::State::choose(DeviceId source, DeviceId target, std::size_t channel) {
  if (joins.size() == 1) return joins.front();
  // Lists of crossings are contiguous and in link order, so pointers of one list compare.
  exits.clear();
  entries.clear();
  for (const Join& join : joins) exits.push_back(join.exit);
  std::sort(exits.begin(), exits.end());
  exits.erase(std::unique(exits.begin(), exits.end()), exits.end());
  const Crossing* exit = exits[spread(source, channel, exits.size())];
  for (const Join& join : joins)
    if (join.exit == exit) entries.push_back(join.entry);
  std::sort(entries.begin(), entries.end());
  return {exit, entries[spread(target, channel, entries.size())]};
}

bool Routing::State::walk(std::size_t group, std::uint32_t from, std::uint32_t to,
                          RouteSpread spread, Route& route) {
  arcs.clear();
  if (!shapes.paths(group).walk(from, to, spread, arcs)) return false;
  for (const std::uint32_t arc : arcs) route.push_back(shapes.links(group)[arc]);
  return true;
}

bool Routing::State::stay(DeviceId source, DeviceId target, std::size_t channel, Route& route) {
  const RouteSpread spread{shapes.ordinal(target) + channel, 0};
  return walk(shapes.group_of(target), shapes.local(source), shapes.local(target), spread, route);
}

void Routing::State::cross(DeviceId source, DeviceId target, Join join, std::size_t channel,
                           Route& route) {
  DeviceId at = source;
  bool found = true;
  if (join.exit) {
    found = stay(source, topology[join.exit->link].source, channel, route);
    route.push_back(join.exit->link);
    at = topology[join.exit->link].target;
  }
  if (join.entry) {
    const RouteSpread spread{join.entry->port + channel, shapes.number(join.entry->outer)};
    found = found && walk(shapes.fabric(), shapes.local(at), join.entry->outer, spread, route);
    route.push_back(join.entry->link);
    at = topology[join.entry->link].target;
  }
  found = found && stay(at, target, channel, route);
  ASSERT(found);
}

ShortestPaths& Routing::State::all_paths() {
  if (everything) return *everything;
  std::vector<Arc> all;
  std::vector<bool> closed;
  for (const Link& link : topology.links())
    all.push_back({static_cast<std::uint32_t>(link.source), static_cast<std::uint32_t>(link.target),
                   cost_of(topology, link)});
  for (const Device& device : topology.devices())
    closed.push_back(device.kind == DeviceKind::memory);
  return everything.emplace(std::move(all), std::move(closed));
}

bool Routing::State::search(DeviceId source, DeviceId target, std::size_t channel, Route& route) {
  arcs.clear();
  const RouteSpread spread{shapes.ordinal(target) + channel, shapes.group_of(target)};
  if (!all_paths().walk(static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(target),
                        spread, arcs))
    return false;
  for (const std::uint32_t arc : arcs) route.push_back(static_cast<LinkId>(arc));
  return true;
}

namespace {

// Every beginning with every ending, as many as wanted.
std::vector<Route> product(const std::vector<Route>& begins, const std::vector<Route>& ends,
                           std::size_t most) {
  std::vector<Route> whole;
  for (const Route& begin : begins)
    for (const Route& end : ends) {
      if (whole.size() == most) return whole;
      whole.push_back(begin);
      whole.back().insert(whole.back().end(), end.begin(), end.end());
    }
  return whole;
}

}  // namespace

std::vector<Route> Routing::State::all_within(DeviceId from, DeviceId to, std::size_t most) {
  const std::size_t group = shapes.group_of(to);
  std::vector<Route> routes;
  for (const std::vector<std::uint32_t>& path :
       shapes.paths(group).all(shapes.local(from), shapes.local(to), most)) {
    Route& route = routes.emplace_back();
    for (const std::uint32_t arc : path) route.push_back(shapes.links(group)[arc]);
  }
  return routes;
}

std::vector<Route> Routing::State::all_across(DeviceId source, DeviceId target, Join join,
                                              std::size_t most) {
  std::vector<Route> routes{{}};
  DeviceId at = source;
  if (join.exit) {
    const Link& exit = topology[join.exit->link];
    routes = product(all_within(source, exit.source, most), {{join.exit->link}}, most);
    at = exit.target;
  }
  if (join.entry) {
    const Link& entry = topology[join.entry->link];
    routes = product(routes, all_within(at, entry.source, most), most);
    routes = product(routes, {{join.entry->link}}, most);
    at = entry.target;
  }
  return product(routes, all_within(at, target, most), most);
}

Routing::Routing(const Topology& topology) : state_{std::make_unique<State>(topology)} {}
Routing::~Routing() = default;
Routing::Routing(Routing&&) noexcept = default;

const Topology& Routing::topology() const { return state_->topology; }

std::vector<LinkId> Routing::route(DeviceId source, DeviceId target, std::size_t channel) {
  State& s = *state_;
  Route route;
  if (source == target) return route;
  route.reserve(12);  // through three levels of a fat tree and two PCIe trees
  if (s.shapes.group_of(source) == s.shapes.group_of(target)) {
    if (s.stay(source, target, channel, route)) return route;
  } else {
    s.find_joins(source, target);
    if (!s.joins.empty()) {
      s.cross(source, target, s.choose(source, target, channel), channel, route);
      return route;
    }
  }
  if (s.search(source, target, channel, route)) return route;
  throw InputError(
      fmt::format("no way from '{}' to '{}'", s.topology[source].name, s.topology[target].name));
}

std::vector<std::vector<LinkId>> Routing::equal_routes(DeviceId source, DeviceId target,
                                                       std::size_t most) {
  State& s = *state_;
  std::vector<Route> routes;
  if (s.shapes.group_of(source) == s.shapes.group_of(target)) {
    routes = s.all_within(source, target, most);
  } else {
    s.find_joins(source, target);
    for (const Join& join : s.joins) {
      if (routes.size() == most) break;
      std::vector<Route> more = s.all_across(source, target, join, most - routes.size());
      std::move(more.begin(), more.end(), std::back_inserter(routes));
    }
  }
  if (!routes.empty()) return routes;
  for (const std::vector<std::uint32_t>& path : s.all_paths().all(
           static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(target), most)) {
    Route& route = routes.emplace_back();
    for (const std::uint32_t arc : path) route.push_back(static_cast<LinkId>(arc));
  }
  return routes;
}

}  // namespace rehearse
