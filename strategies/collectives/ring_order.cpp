// Rings inside a node: the highest rate at which a Hamiltonian cycle exists, then the next one on
// what it leaves free. Between nodes: one ring per NIC, in and out on the same rail.
//
//   node 0   ▶ 0 1 2 3 ▶      node 1   ▶ 3 2 1 0 ▶      node 2   ▶ 0 1 2 3 ▶ …
//                     └─ rail 3 ─────┘           └─ rail 0 ─────┘
//
// Channel c turns the node's order by c, so every rail carries one ring in each direction.
#include "strategies/collectives/ring_order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace rehearse {

namespace {

/// Routes between the ranks of one node, over what earlier rings have left free of each link.
class NodeGraph {
 public:
  NodeGraph(Routing& routing, std::span<const Rank> ranks) : n_{ranks.size()} {
    const Topology& topology = routing.topology();
    for (const Rank source : ranks)
      for (const Rank target : ranks) {
        routes_.push_back(routing.route(topology.device_of(source), topology.device_of(target)));
        for (const LinkId link : routes_.back())
          links_.try_emplace(link, State{topology[link].bandwidth.count(), 0});
      }
    for (std::size_t a = 0; a < n_; ++a) {
      nearest_.emplace_back();
      for (std::size_t step = 1; step < n_; ++step) nearest_[a].push_back((a + step) % n_);
      std::stable_sort(nearest_[a].begin(), nearest_[a].end(), [&](std::size_t b, std::size_t c) {
        return route(a, b).size() < route(a, c).size();
      });
    }
  }

  /// Another order in which to try the next ranks of a cycle, the same for the same seed.
  void shuffle(std::uint32_t seed) {
    for (std::vector<std::size_t>& order : nearest_)
      for (std::size_t i = order.size(); i > 1; --i) {
        seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' generator
        std::swap(order[i - 1], order[(seed >> 16) % i]);
      }
  }

  /// A cycle through all ranks whose slowest link is as fast as possible, the natural order first;
  /// nothing when none has a rate left, or none is found in a bounded search.
  std::optional<std::vector<std::size_t>> best_cycle(double& its_rate,
                                                     std::size_t effort = 100'000) {
    std::vector<double> rates;
    for (const auto& [link, state] : links_)
      if (state.free > 0) rates.push_back(state.free);
    std::sort(rates.rbegin(), rates.rend());
    rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
    for (const double at_least : rates) {
      std::vector<std::size_t> path{0};
      std::vector<bool> visited(n_);
      visited[0] = true;
      std::size_t budget = effort;
      its_rate = at_least;
      const bool found = extend(path, visited, at_least, budget);
      for (auto& [link, state] : links_) state.uses = 0;
      if (found) return path;
    }
    return std::nullopt;
  }

  void take(std::span<const std::size_t> cycle, double rate) {
    for (std::size_t i = 0; i < n_; ++i)
      for (const LinkId link : route(cycle[i], cycle[(i + 1) % n_])) {
        double& free = links_.at(link).free;
        free = std::max(0.0, free - rate);
      }
  }

 private:
  struct State {
    double free = 0;
    std::size_t uses = 0;  // by the cycle that is being tried
  };

  std::span<const LinkId> route(std::size_t a, std::size_t b) const { return routes_[a * n_ + b]; }

  // A link that several hops of one ring cross gives each of them its part only.
  bool use(std::size_t a, std::size_t b, double at_least) {
    bool enough = true;
    for (const LinkId link : route(a, b)) {
      State& state = links_.at(link);
      ++state.uses;
      enough = enough && state.free >= at_least * static_cast<double>(state.uses);
    }
    return enough;
  }
  void release(std::size_t a, std::size_t b) {
    for (const LinkId link : route(a, b)) --links_.at(link).uses;
  }

  bool extend(std::vector<std::size_t>& path, std::vector<bool>& visited, double at_least,
              std::size_t& budget) {
    const std::size_t here = path.back();
    if (path.size() == n_) {
      const bool closes = use(here, path.front(), at_least);
      release(here, path.front());
      return closes;
    }
    if (budget == 0) return false;
    --budget;
    for (const std::size_t next : nearest_[here]) {
      if (visited[next]) continue;
      if (use(here, next, at_least)) {
        visited[next] = true;
        path.push_back(next);
        if (extend(path, visited, at_least, budget)) return true;
        path.pop_back();
        visited[next] = false;
      }
      release(here, next);
    }
    return false;
  }

  std::size_t n_;
  std::vector<std::vector<LinkId>> routes_;
  std::vector<std::vector<std::size_t>> nearest_;
  std::map<LinkId, State> links_;
};

std::vector<std::size_t> natural_order(std::size_t n) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  return order;
}

// Whether every two of an even number of ranks have a link of their own.
bool is_full_mesh(Routing& routing, std::span<const Rank> ranks) {
  if (ranks.size() < 4 || ranks.size() % 2 == 1) return false;
  const Topology& topology = routing.topology();
  for (const Rank source : ranks)
    for (const Rank target : ranks)
      if (source != target &&
          routing.route(topology.device_of(source), topology.device_of(target)).size() != 1)
        return false;
  return true;
}

// n ranks, every two of them joined, have n-1 rings that share no link (Tillson 1980), but taking
// one after another may leave links that make none: then other orders are tried.
std::vector<std::vector<std::size_t>> mesh_cycles(Routing& routing, std::span<const Rank> ranks) {
  constexpr std::uint32_t attempts = 200;
  constexpr std::size_t effort = 3000;
  std::vector<std::vector<std::size_t>> most;
  for (std::uint32_t seed = 0; seed < attempts && most.size() + 1 < ranks.size(); ++seed) {
    NodeGraph graph(routing, ranks);
    if (seed > 0) graph.shuffle(seed);
    std::vector<std::vector<std::size_t>> cycles;
    double rate = 0, first = 0;
    for (auto cycle = graph.best_cycle(rate, effort); cycle;
         cycle = graph.best_cycle(rate, effort)) {
      if (first == 0) first = rate;
      if (rate < first) break;
      graph.take(*cycle, rate);
      cycles.push_back(*cycle);
    }
    if (cycles.size() > most.size()) most = std::move(cycles);
  }
  return most;
}

// Rings of one node until no more is free; a ring of twice the rate of the slowest counts twice, so
// that equal shares of the data keep all of them busy.
std::vector<std::vector<std::size_t>> node_cycles(Routing& routing, std::span<const Rank> ranks) {
  constexpr std::size_t searched = 16, most = 16;
  if (ranks.size() < 3 || ranks.size() > searched) return {natural_order(ranks.size())};
  if (is_full_mesh(routing, ranks)) return mesh_cycles(routing, ranks);
  NodeGraph graph(routing, ranks);
  std::vector<std::pair<std::vector<std::size_t>, double>> found;
  while (found.size() < most) {
    double rate = 0;
    const auto cycle = graph.best_cycle(rate);
    if (!cycle || (!found.empty() && rate < found.front().second / 4)) break;
    graph.take(*cycle, rate);
    found.emplace_back(*cycle, rate);
  }
  if (found.empty()) return {natural_order(ranks.size())};
  double slowest = found.front().second;
  for (const auto& [cycle, rate] : found) slowest = std::min(slowest, rate);
  std::vector<std::vector<std::size_t>> cycles;
  for (const auto& [cycle, rate] : found)
    for (double share = slowest; share <= rate * (1 + 1e-9) && cycles.size() < most;
         share += slowest)
      cycles.push_back(cycle);
  return cycles;
}

// The way of channel c through node b of `nodes`: in at place c and out at c-1 of the node's cycle,
// and in every second node the other way round, so that each hop between nodes stays on its rail.
// An odd number of nodes closes over a third rail: … ▶ c-1 … c-2 ▶ c-2 … c ▶ back to the first.
std::vector<std::size_t> turned(std::span<const std::size_t> cycle, std::size_t c, std::size_t b,
                                std::size_t nodes) {
  const std::size_t g = cycle.size();
  const bool third_rail = nodes % 2 == 1 && nodes > 2 && g > 2;
  std::vector<std::size_t> way;
  const auto add = [&](std::size_t place) { way.push_back(cycle[place % g]); };
  if (third_rail && b + 1 == nodes) {
    for (std::size_t i = 0; i + 2 < g; ++i) add(c + 2 * g - 2 - i);
    add(c + g - 1);
    add(c);
    return way;
  }
  const bool backwards = b % 2 == 1 && !(third_rail && b + 2 == nodes);
  const std::size_t first = b % 2 == 0 ? c : c + g - 1;
  for (std::size_t i = 0; i < g; ++i) add(backwards ? first + g - i : first + i);
  return way;
}

// The ways of g channels through a full mesh that use every link once, in either direction: the
// rows of a row-complete Latin square, c + (0, 1, -1, 2, -2, …) (Williams 1949).
std::vector<std::size_t> zigzag(std::size_t g, std::size_t c, bool backwards) {
  std::vector<std::size_t> way;
  for (std::size_t i = 0; i < g; ++i)
    way.push_back((c + (i % 2 == 1 ? (i + 1) / 2 : g - i / 2)) % g);
  if (backwards) std::reverse(way.begin(), way.end());
  return way;
}

}  // namespace

std::size_t useful_channels(const Routing& routing, std::span<const Rank> group) {
  const Topology& topology = routing.topology();
  const std::vector<Rank> block = blocks_by_node(topology, group).front();
  const NodeId node = topology[topology.device_of(block.front())].node;
  std::size_t nics = 0, gpus = 0;
  for (const Device& device : topology.devices()) {
    if (device.node != node || node == no_node) continue;
    nics += device.kind == DeviceKind::nic;
    gpus += device.kind == DeviceKind::gpu;
  }
  // A rank may have several NICs of its own (AWS P5: four).
  const std::size_t own = gpus == 0 ? 1 : std::max<std::size_t>(1, nics / gpus);
  return std::clamp<std::size_t>(nics, 1, block.size() * own);
}

std::vector<std::vector<Rank>> ring_orders(Routing& routing, std::span<const Rank> group,
                                           std::size_t channels) {
  const Topology& topology = routing.topology();
  const std::vector<std::vector<Rank>> blocks = blocks_by_node(topology, group);
  std::vector<std::vector<Rank>> orders;
  if (blocks.size() == 1) {
    const auto cycles = node_cycles(routing, blocks.front());
    const std::size_t count = channels == 0 ? cycles.size() : channels;
    for (std::size_t c = 0; c < count; ++c) {
      orders.emplace_back();
      for (const std::size_t i : cycles[c % cycles.size()])
        orders.back().push_back(blocks.front()[i]);
    }
    return orders;
  }

  std::map<std::size_t, std::vector<std::size_t>> inside;  // by size of the block
  for (const std::vector<Rank>& block : blocks)
    if (!inside.contains(block.size())) inside[block.size()] = node_cycles(routing, block).front();
  const std::size_t count = channels == 0 ? useful_channels(routing, group) : channels;
  const bool mesh = inside.size() == 1 && is_full_mesh(routing, blocks.front());
  // With fewer channels than ranks they begin as far apart as their NICs are.
  const std::size_t apart = std::max<std::size_t>(1, blocks.front().size() / count);
  for (std::size_t c = 0; c < count; ++c) {
    std::vector<Rank>& order = orders.emplace_back();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::size_t g = blocks[b].size();
      for (const std::size_t place : mesh ? zigzag(g, c * apart, b % 2 == 1)
                                          : turned(inside.at(g), c * apart, b, blocks.size()))
        order.push_back(blocks[b][place]);
    }
  }
  return orders;
}

}  // namespace rehearse
