// Routes of connections. A multicast or in-switch reduction crosses the union of its branches once.
#include "sim/engine/paths.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace rehearse {

namespace {

struct Way {
  std::vector<LinkId> links;
  Time latency;
};

bool crosses_network(const Topology& topology, std::span<const LinkId> links) {
  return std::any_of(links.begin(), links.end(),
                     [&](LinkId link) { return topology[link].kind == LinkKind::network; });
}

Time latency_of(const Topology& topology, std::span<const LinkId> links) {
  Time sum;
  for (const LinkId link : links) sum += topology[link].latency;
  return sum;
}

Way way_of(const Connection& connection, Routing& routing) {
  const Topology& topology = routing.topology();
  const auto route = [&](Rank source, Rank target) {
    return routing.route(topology.device_of(source), topology.device_of(target),
                         connection.channel);
  };
  if (connection.shape == Connection::Shape::point_to_point) {
    std::vector<LinkId> links = route(connection.source, connection.target);
    const Time latency = latency_of(topology, links);
    return {std::move(links), latency};
  }
  Way way;
  const bool spreads = connection.shape == Connection::Shape::multicast;
  const Rank root = spreads ? connection.source : connection.target;
  for (const Rank other : connection.others) {
    if (other == root && connection.others.size() > 1) {
      // The root's own share goes up to the switch and comes back down like everybody's: the first
      // link of a way out, or the last of a way in.
      const Rank peer = connection.others[connection.others.front() == root ? 1 : 0];
      way.links.push_back(spreads ? route(peer, root).back() : route(root, peer).front());
      continue;
    }
    const std::vector<LinkId> branch = spreads ? route(root, other) : route(other, root);
    way.latency = std::max(way.latency, latency_of(topology, branch));
    way.links.insert(way.links.end(), branch.begin(), branch.end());
  }
  std::sort(way.links.begin(), way.links.end());
  way.links.erase(std::unique(way.links.begin(), way.links.end()), way.links.end());
  return way;
}

}  // namespace

const Protocol& protocol_of(const Program& program, const Connection& connection) {
  static const Protocol plain;
  if (program.protocols.empty()) return plain;
  return program.protocols.at(connection.protocol);
}

namespace {

/// The connections met lately by their ends: a collective goes the same ways back and forth.
class Twins {
 public:
  /// An earlier connection with the same route, or `number` itself, which is remembered.
  std::uint32_t find(const Connection& connection, std::uint32_t number,
                     std::span<const Connection> all) {
    if (connection.shape != Connection::Shape::point_to_point) return number;
    const std::uint64_t key = index(connection.source) * 0x9e3779b97f4a7c15u ^
                              index(connection.target) * 0xc2b2ae3d27d4eb4fu ^ connection.channel;
    std::uint32_t& slot = slots_[(key ^ key >> 29) % slots_.size()];
    if (slot < number && all[slot].shape == connection.shape &&
        all[slot].source == connection.source && all[slot].target == connection.target &&
        all[slot].channel == connection.channel)
      return slot;
    return slot = number;
  }

 private:
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1 << 18, UINT32_MAX);
};

}  // namespace

Paths::Paths(const Program& program, Routing& routing) {
  const Topology& topology = routing.topology();
  const std::span<const Connection> all = program.connections();
  const bool folded = !program.folded.empty();
  ASSERT(!folded || program.folded.size() == all.size());
  std::vector<Time> route_latency;
  std::optional<Twins> twins;
  if (!folded && all.size() > 10'000) twins.emplace();
  for (std::uint32_t c = 0; c < all.size(); ++c) {
    const std::uint32_t twin = twins ? twins->find(all[c], c, all) : c;
    if (folded) {
      const FoldedPath& path = program.folded[c];
      crossings_.insert(crossings_.end(), path.crossings.begin(), path.crossings.end());
      route_latency.push_back(path.latency);
      network_.push_back(path.network);
      gap_.push_back(path.gap);
      bursts_.push_back(path.bursts);
      any_gap_ = any_gap_ || path.bursts > 1;
    } else if (twin != c) {
      for (std::uint32_t k = begin_[twin]; k < begin_[twin + 1]; ++k)
        crossings_.push_back(Crossing{crossings_[k]});
      route_latency.push_back(route_latency[twin]);
      network_.push_back(network_[twin]);
    } else {
      const Way way = way_of(all[c], routing);
      for (const LinkId link : way.links) crossings_.push_back({link, 1});
      route_latency.push_back(way.latency);
      network_.push_back(crosses_network(topology, way.links) ? 1 : 0);
    }
    const Protocol& protocol = protocol_of(program, all[c]);
    if (!folded && all[c].latency > Time{}) {
      latency_.push_back(all[c].latency + overhead_of(protocol, all[c].network));
    } else {
      latency_.push_back(route_latency.back() + overhead_of(protocol, network_.back()));
    }
    flight_.push_back(all[c].posted ? latency_.back() : Time{});
    any_flight_ = any_flight_ || flight_.back() > Time{};
    begin_.push_back(static_cast<std::uint32_t>(crossings_.size()));
    double rate = protocol.limit.count() > 0 ? protocol.limit.count()
                                             : std::numeric_limits<double>::infinity();
    if (all[c].limit.count() > 0) rate = std::min(rate, all[c].limit.count());
    for (const Crossing& crossing : crossings(static_cast<ConnectionId>(c)))
      rate = std::min(rate, topology[crossing.link].bandwidth.count() / crossing.weight);
    rate_alone_.push_back(BytesPerSecond{rate});
  }
}

CrossedLinks::CrossedLinks(const Paths& paths, const Topology& topology) {
  constexpr std::uint32_t unknown = UINT32_MAX;
  if (8 * paths.all_crossings().size() >= topology.links().size())
    dense_.assign(topology.links().size() + 1, unknown);
  for (const Paths::Crossing& crossing : paths.all_crossings()) {
    const auto next = static_cast<std::uint32_t>(links_.size());
    bool added = false;
    if (dense_.empty()) {
      added = sparse_.try_emplace(crossing.link, next).second;
    } else if (dense_[index(crossing.link)] == unknown) {
      added = true;
      dense_[index(crossing.link)] = next;
    }
    if (added) links_.push_back(crossing.link);
  }
}

}  // namespace rehearse
