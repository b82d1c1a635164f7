// Routes are compared link by link: common to all servers, or a server's own with twins at the
// others.
#include "strategies/servers/server_ways.hpp"

#include <map>
#include <set>

#include "strategies/fold/step_network.hpp"

namespace rehearse {

namespace {

using Route = std::vector<LinkId>;

/// The routes of all workers to (or from) each server.
class Symmetry {
 public:
  Symmetry(const Topology& topology, std::size_t servers)
      : topology_{topology}, users_{}, twins_(servers) {}

  void see(std::size_t server, const Route& route) {
    for (const LinkId link : route) users_[link].insert(server);
  }

  /// Whether the way to `server` is that to server 0, with each own link of the one in the place
  /// of an own link of the other.
  bool alike(std::size_t server, const Route& first, const Route& other) {
    if (first.size() != other.size()) return false;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool own = users_.at(first[i]).size() == 1;
      if (!own && (first[i] != other[i] || users_.at(first[i]).size() != twins_.size()))
        return false;
      if (!own) continue;
      const Link &a = topology_[first[i]], &b = topology_[other[i]];
      if (users_.at(other[i]).size() != 1 || a.bandwidth != b.bandwidth || a.latency != b.latency)
        return false;
      const auto [known, is_new] = twins_[server].emplace(first[i], other[i]);
      if (!is_new && known->second != other[i]) return false;
      if (is_new && !taken_.insert(other[i]).second) return false;  // one twin each
    }
    return true;
  }

  FoldedPath fold(const Route& route) const {
    FoldedPath path{
        .crossings = {}, .latency = {}, .stands_for = static_cast<std::uint32_t>(twins_.size())};
    for (const LinkId link : route) {
      path.latency += topology_[link].latency;
      if (topology_[link].kind == LinkKind::network) path.network = 1;
      path.crossings.push_back(
          {link, static_cast<std::uint32_t>(users_.at(link).size() == 1 ? 1 : twins_.size())});
    }
    return path;
  }

 private:
  const Topology& topology_;
  std::map<LinkId, std::set<std::size_t>> users_;  // servers whose ways cross a link
  std::vector<std::map<LinkId, LinkId>> twins_;    // by server: its link for one of server 0
  std::set<LinkId> taken_;
};

/// Both ways between every worker and every server.
struct Routes {
  std::vector<Route> there, back;  // by worker, then server
};

Routes routes_of(const std::vector<Rank>& workers, const std::vector<Rank>& servers,
                 Routing& routing) {
  const Topology& topology = routing.topology();
  Routes routes;
  for (const Rank worker : workers)
    for (const Rank server : servers) {
      const DeviceId a = topology.device_of(worker), b = topology.device_of(server);
      routes.there.push_back(routing.route(a, b));
      routes.back.push_back(routing.route(b, a));
    }
  return routes;
}

// The folded paths, all ways there and then all ways back; empty where servers are not alike.
std::vector<FoldedPath> fold(const Routes& routes, std::size_t servers, const Topology& topology) {
  // One symmetry for both directions: a link of one is never a link of the other.
  Symmetry symmetry(topology, servers);
  for (const std::vector<Route>* way : {&routes.there, &routes.back})
    for (std::size_t i = 0; i < way->size(); ++i) symmetry.see(i % servers, (*way)[i]);
  std::vector<FoldedPath> paths;
  for (const std::vector<Route>* way : {&routes.there, &routes.back})
    for (std::size_t i = 0; i < way->size(); ++i) {
      const std::size_t first = i - i % servers;
      if (!symmetry.alike(i % servers, (*way)[first], (*way)[i])) return {};
      if (i == first) paths.push_back(symmetry.fold((*way)[i]));
    }
  return paths;
}

}  // namespace

ServerWays connect_servers(Program& program, const std::vector<Rank>& workers,
                           const std::vector<Rank>& servers, Routing& routing, bool alike) {
  const Topology& topology = routing.topology();
  program.protocols = topology.protocols;
  ServerWays ways{.servers = servers.size()};
  if (alike && servers.size() > 1)
    program.folded = fold(routes_of(workers, servers, routing), servers.size(), topology);
  if (!program.folded.empty()) ways = {.servers = 1, .stands_for = servers.size()};
  const std::uint16_t protocol = message_protocol_number(topology);
  const auto connect = [&](Rank source, Rank target) {
    return program.connect(
        {.source = source, .target = target, .protocol = protocol, .posted = true, .others = {}});
  };
  for (const Rank worker : workers)
    for (std::size_t s = 0; s < ways.servers; ++s)
      ways.there.push_back(connect(worker, servers[s]));
  for (const Rank worker : workers)
    for (std::size_t s = 0; s < ways.servers; ++s) ways.back.push_back(connect(servers[s], worker));
  return ways;
}

}  // namespace rehearse
