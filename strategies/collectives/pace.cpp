// Counts who crosses what, stage by stage.
#include "strategies/collectives/pace.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {

namespace {

bool is_in_switch(const Connection& connection) {
  return connection.shape != Connection::Shape::point_to_point;
}

// What a switch that adds carries of a link's rate at most; zero: all of it.
BytesPerSecond switch_rate(const Pattern& pattern, const Topology& topology) {
  const auto node_of = [&](const Hop& hop) {
    return topology[topology.device_of(hop.connection.source)].node;
  };
  for (const Hop& hop : pattern.hops)
    if (node_of(hop) != node_of(pattern.hops.front())) return topology.library.far_switch_rate;
  return topology.library.switch_rate;
}

void pace_stage(Pattern& pattern, Paths& paths, const Topology& topology,
                std::span<const std::uint32_t> hops, BytesPerSecond added,
                std::vector<std::uint32_t>& crossed) {
  for (const std::uint32_t h : hops)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h)))
      ++crossed[index(crossing.link)];
  for (const std::uint32_t h : hops) {
    double share = std::numeric_limits<double>::infinity();
    bool is_limited = false;
    const bool in_switch = is_in_switch(pattern.hops[h].connection);
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h))) {
      const std::uint32_t count = crossed[index(crossing.link)];
      const Link& link = topology[crossing.link];
      double rate = link.bandwidth.count();
      if (in_switch) rate *= topology.library.in_switch;
      if (in_switch && link.kind == LinkKind::nvlink && added.count() > 0)
        rate = std::min(rate, added.count());
      is_limited = is_limited || count > 1 || rate < link.bandwidth.count();
      share = std::min(share, rate / count);
    }
    if (!is_limited) continue;
    pattern.hops[h].connection.limit = BytesPerSecond{share};
    paths.limit(static_cast<ConnectionId>(h), BytesPerSecond{share});
  }
  for (const std::uint32_t h : hops)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h)))
      crossed[index(crossing.link)] = 0;
}

}  // namespace

void pace(Pattern& pattern, Paths& paths, const Topology& topology) {
  std::vector<std::vector<std::uint32_t>> stages;
  for (std::uint32_t h = 0; h < pattern.hops.size(); ++h) {
    const std::size_t stage = pattern.pipelined ? 0 : pattern.hops[h].stage;
    if (stage >= stages.size()) stages.resize(stage + 1);
    stages[stage].push_back(h);
  }
  std::vector<std::uint32_t> crossed(topology.links().size());
  const BytesPerSecond added = switch_rate(pattern, topology);
  for (const auto& hops : stages) pace_stage(pattern, paths, topology, hops, added, crossed);
}

void await_messages(Pattern& pattern, const Paths& paths) {
  for (std::uint32_t h = 0; h < pattern.hops.size(); ++h)
    if (paths.network(static_cast<ConnectionId>(h)) > 0) pattern.hops[h].connection.posted = false;
}

void even_out_rings(Pattern& pattern, Paths& paths) {
  std::vector<bool> seen(pattern.hops.size());
  std::vector<std::uint32_t> ring;
  for (std::uint32_t first = 0; first < pattern.hops.size(); ++first) {
    ring.clear();
    std::uint32_t h = first;
    while (!seen[h]) {
      seen[h] = true;
      ring.push_back(h);
      const HopId before = pattern.hops[h].follows[0];
      if (before == no_hop) break;
      h = static_cast<std::uint32_t>(index(before));
    }
    if (ring.size() < 2 || h != first) continue;  // a chain, or nothing new
    std::int64_t latency = 0;
    double network = 0;
    bool differ = false;
    for (const std::uint32_t each : ring) {
      const auto id = static_cast<ConnectionId>(each);
      latency += paths.latency(id).ps();
      network += paths.network(id);
      const auto begin = static_cast<ConnectionId>(first);
      differ = differ || paths.latency(id) != paths.latency(begin) ||
               paths.network(id) != paths.network(begin);
    }
    if (!differ) continue;
    const auto hops = static_cast<std::int64_t>(ring.size());
    const Time mean = Time::picoseconds(latency / hops);
    for (const std::uint32_t each : ring) {
      Connection& connection = pattern.hops[each].connection;
      connection.latency = mean;
      connection.network = network / static_cast<double>(hops);
      paths.even_out(static_cast<ConnectionId>(each), mean, connection.network);
    }
  }
}

}  // namespace rehearse
