// Counts who crosses what, stage by stage.
#include "strategies/collectives/pace.hpp"

#include <limits>

namespace rehearse {

namespace {

void pace_stage(Pattern& pattern, Paths& paths, const Topology& topology,
                std::span<const std::uint32_t> hops, std::vector<std::uint32_t>& crossed) {
  for (const std::uint32_t h : hops)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h)))
      ++crossed[index(crossing.link)];
  for (const std::uint32_t h : hops) {
    double share = std::numeric_limits<double>::infinity();
    bool shares_a_link = false;
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h))) {
      const std::uint32_t count = crossed[index(crossing.link)];
      shares_a_link = shares_a_link || count > 1;
      share = std::min(share, topology[crossing.link].bandwidth.count() / count);
    }
    const bool in_switch = pattern.hops[h].connection.shape != Connection::Shape::point_to_point &&
                           topology.library.in_switch < 1;
    if (in_switch) share *= topology.library.in_switch;
    if (!shares_a_link && !in_switch) continue;
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
  for (const auto& hops : stages) pace_stage(pattern, paths, topology, hops, crossed);
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
