// Routes of connections. A multicast or in-switch reduction crosses the union of its branches once.
#include "sim/paths.hpp"

#include <algorithm>
#include <limits>

namespace rehearse {

namespace {

struct Way {
  std::vector<LinkId> links;
  Time latency;
};

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

Paths::Paths(const Program& program, Routing& routing) {
  const Topology& topology = routing.topology();
  const bool folded = !program.folded.empty();
  ASSERT(!folded || program.folded.size() == program.connections().size());
  for (std::size_t c = 0; c < program.connections().size(); ++c) {
    const Connection& connection = program.connections()[c];
    const Protocol& protocol = protocol_of(program, connection);
    if (folded) {
      const FoldedPath& path = program.folded[c];
      crossings_.insert(crossings_.end(), path.crossings.begin(), path.crossings.end());
      latency_.push_back(protocol.overhead + path.latency);
      stands_for_.push_back(path.stands_for);
    } else {
      const Way way = way_of(connection, routing);
      for (const LinkId link : way.links) crossings_.push_back({link, 1});
      latency_.push_back(protocol.overhead + way.latency);
      stands_for_.push_back(1);
    }
    begin_.push_back(static_cast<std::uint32_t>(crossings_.size()));
    double rate = protocol.limit.count() > 0 ? protocol.limit.count()
                                             : std::numeric_limits<double>::infinity();
    if (connection.limit.count() > 0) rate = std::min(rate, connection.limit.count());
    for (const Crossing& crossing : crossings(static_cast<ConnectionId>(c)))
      rate = std::min(rate, topology[crossing.link].bandwidth.count() / crossing.weight);
    rate_alone_.push_back(BytesPerSecond{rate});
  }
}

}  // namespace rehearse
