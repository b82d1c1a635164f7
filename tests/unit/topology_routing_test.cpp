// Routes against a plain Bellman-Ford over the whole machine, on random machines and on every
// generator; then the promises about equal routes.
#include "topology/routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "sim/base/error.hpp"
#include "topology/generators.hpp"

namespace rehearse::topology_routing_test {
namespace {

constexpr Cable fast{BytesPerSecond{100e9}, Time::picoseconds(300'000)};
constexpr Cable slow{BytesPerSecond{10e9}, Time::picoseconds(850'000)};

// The rule of topology/DECISIONS.md, written once more: other people's nodes entered, GPUs and CPUs
// passed through, time of 16 KiB, hops.
using Length = std::tuple<int, int, int, std::int64_t, int>;

Length plus(const Length& a, const Length& b) {
  return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
          std::get<2>(a) + std::get<2>(b), std::get<3>(a) + std::get<3>(b),
          std::get<4>(a) + std::get<4>(b)};
}

Length length_of(const Topology& t, const Link& link) {
  const Device &from = t[link.source], &to = t[link.target];
  return {to.node != no_node && to.node != from.node, from.kind == DeviceKind::gpu,
          from.kind == DeviceKind::cpu, (link.latency + Time::round(16_KiB / link.bandwidth)).ps(),
          1};
}

std::vector<std::optional<Length>> lengths_from(const Topology& t, DeviceId source) {
  std::vector<std::optional<Length>> best(t.devices().size());
  best[index(source)] = Length{};
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link& link : t.links()) {
      const bool forwards = link.source == source || t[link.source].kind != DeviceKind::memory;
      if (!best[index(link.source)] || !forwards) continue;
      const Length through = plus(*best[index(link.source)], length_of(t, link));
      std::optional<Length>& known = best[index(link.target)];
      if (!known || through < *known) known = through, changed = true;
    }
  }
  return best;
}

Length length_of(const Topology& t, DeviceId source, DeviceId target,
                 const std::vector<LinkId>& route) {
  Length sum{};
  DeviceId at = source;
  for (const LinkId id : route) {
    EXPECT_EQ(t[id].source, at);
    sum = plus(sum, length_of(t, t[id]));
    at = t[id].target;
  }
  EXPECT_EQ(at, target);
  return sum;
}

void expect_shortest(const Topology& t, std::size_t sources) {
  Routing routing{t};
  std::mt19937 random{7};
  for (std::size_t i = 0; i < sources; ++i) {
    const auto source = static_cast<DeviceId>(random() % t.devices().size());
    const auto best = lengths_from(t, source);
    for (std::size_t d = 0; d < t.devices().size(); ++d) {
      const auto target = static_cast<DeviceId>(d);
      if (!best[d]) {
        EXPECT_THROW(routing.route(source, target), InputError);
        EXPECT_TRUE(routing.equal_routes(source, target).empty());
        continue;
      }
      for (const std::size_t channel : {0, 1, 5})
        ASSERT_EQ(length_of(t, source, target, routing.route(source, target, channel)), *best[d])
            << t[source].name << " to " << t[target].name;
      std::set<std::vector<LinkId>> seen;
      for (const std::vector<LinkId>& route : routing.equal_routes(source, target, 8)) {
        ASSERT_EQ(length_of(t, source, target, route), *best[d]);
        ASSERT_TRUE(seen.insert(route).second) << "the same route twice";
      }
      ASSERT_FALSE(seen.empty());
    }
  }
}

Topology random_machine(std::mt19937& random) {
  Topology t;
  const std::size_t nodes = random() % 5, devices = 3 + random() % 22;
  for (std::size_t d = 0; d < devices; ++d) {
    const std::size_t place = random() % (nodes + 1);
    t.add({.name = std::to_string(d),
           .kind = static_cast<DeviceKind>(random() % 5),
           .node = place == nodes ? no_node : static_cast<NodeId>(place)});
  }
  const std::size_t links = random() % (4 * devices);
  for (std::size_t l = 0; l < links; ++l) {
    const auto a = static_cast<DeviceId>(random() % devices),
               b = static_cast<DeviceId>(random() % devices);
    if (a == b) continue;
    const Link link{.source = a,
                    .target = b,
                    .bandwidth = fast.bandwidth,
                    .latency = Time::picoseconds(static_cast<std::int64_t>(random() % 3))};
    random() % 4 ? t.connect_both(link) : t.connect(link);
  }
  return t;
}

TEST(Routing, IsShortestOnRandomMachines) {
  std::mt19937 random{42};
  for (int i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    expect_shortest(random_machine(random), 6);
    if (HasFatalFailure()) return;
  }
}

NodeShape server() {
  return {.gpus = 4,
          .nics = 4,
          .switches = 2,
          .sockets = 2,
          .gpu_port = fast,
          .nic_port = fast,
          .uplink = fast,
          .socket = fast,
          .memory = fast,
          .mesh = Mesh::nvswitch,
          .nvlink = fast};
}

TEST(Routing, IsShortestOnEveryGenerator) {
  const std::size_t plane[] = {4, 3}, cube[] = {3, 2, 4};
  NodeShape dgx1 = server();
  dgx1.gpus = 8, dgx1.mesh = Mesh::hybrid_cube_mesh;
  NodeShape summit = server();
  summit.gpus = 6, summit.switches = 0, summit.mesh = Mesh::groups, summit.group = 3;
  const Topology node = make_node(server());
  const Topology one = fully_connected(1, fast);
  const std::vector<Topology> machines{
      ring(9, fast),
      fully_connected(6, fast),
      star(7, fast),
      torus(plane, fast),
      torus(cube, fast),
      make_node(dgx1),
      make_node(summit),
      cluster(node, 6, Star{.cable = slow}),
      cluster(node, 6, FatTree{.cable = slow, .radix = 8, .oversubscription = 2}),
      cluster(node, 12, FatTree{.cable = slow, .levels = 3, .radix = 8}),
      cluster(node, 9, RailOptimized{.cable = slow, .radix = 4}),
      cluster(make_node(dgx1), 5, RailOptimized{.cable = slow, .radix = 4}),
      cluster(node, 6, TorusFabric{.cable = slow, .trunk = fast, .extent = {3, 2}}),
      cluster(one, 12, TorusFabric{.cable = slow, .trunk = fast, .extent = {3, 2, 2}}),
      cluster(node, 12,
              Dragonfly{.cable = slow,
                        .local = fast,
                        .global = slow,
                        .routers_per_group = 2,
                        .nodes_per_router = 2,
                        .globals_per_router = 2}),
  };
  for (std::size_t i = 0; i < machines.size(); ++i) {
    SCOPED_TRACE(i);
    expect_shortest(machines[i], 12);
    if (HasFatalFailure()) return;
  }
}

// A torus whose vertices are nodes of one GPU has no fabric: routes must enter foreign nodes.
TEST(Routing, PassesForeignNodesWhenThereIsNoOtherWay) {
  Topology t;
  for (std::uint32_t i = 0; i < 7; ++i) t.add({.name = std::to_string(i), .node = NodeId{i}});
  for (std::uint32_t i = 0; i < 7; ++i)
    t.connect_both({.source = DeviceId{i},
                    .target = DeviceId{(i + 1) % 7},
                    .bandwidth = fast.bandwidth,
                    .latency = fast.latency});
  expect_shortest(t, 7);
}

TEST(Routing, NamesBothEndsWhenThereIsNoWay) {
  Topology t;
  t.add({.name = "a"});
  t.add({.name = "b"});
  Routing routing{t};
  try {
    routing.route(DeviceId{0}, DeviceId{1});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "error: no way from 'a' to 'b'");
  }
  EXPECT_TRUE(routing.route(DeviceId{0}, DeviceId{0}).empty());
}

TEST(Routing, GpusForwardOnlyWhenNothingElseCan) {
  NodeShape dgx1 = server();
  dgx1.gpus = 8, dgx1.mesh = Mesh::hybrid_cube_mesh;
  const Topology t = make_node(dgx1);
  Routing routing{t};
  // 0 and 5 have no NVLink: two short NVLink hops through GPU 1 lose to the way by the host.
  for (const LinkId id : routing.route(t.device_of(Rank{0}), t.device_of(Rank{5})))
    EXPECT_NE(t[id].kind, LinkKind::nvlink);
  const Topology plain = ring(8, fast);
  Routing around{plain};
  EXPECT_EQ(around.route(plain.device_of(Rank{0}), plain.device_of(Rank{3})).size(), 3u);
}

TEST(Routing, EachGpuUsesItsOwnNic) {
  const Topology t = cluster(make_node(server()), 4, RailOptimized{.cable = slow});
  Routing routing{t};
  for (std::size_t g = 0; g < 4; ++g) {
    const auto route =
        routing.route(t.device_of(static_cast<Rank>(g)), t.device_of(static_cast<Rank>(4 + g)));
    // Two GPUs and two NICs share a PCIe switch; the GPUs take different NICs, and stay on a rail.
    EXPECT_EQ(t[t[route[1]].target].name, "node0/nic" + std::to_string(g));
    EXPECT_EQ(route.size(), 6u);
  }
}

// Every permutation i -> i + k of the ports of a full fat tree runs without two flows on one link.
TEST(Routing, ShiftPermutationsDoNotCollideInAFatTree) {
  const Topology one = fully_connected(1, fast);
  for (const std::size_t levels : {2, 3}) {
    const std::size_t nodes = levels == 2 ? 32 : 64;
    const Topology t = cluster(one, nodes, FatTree{.cable = slow, .levels = levels, .radix = 8});
    Routing routing{t};
    for (std::size_t shift = 1; shift < nodes; ++shift) {
      std::map<LinkId, int> load;
      for (std::size_t i = 0; i < nodes; ++i)
        for (const LinkId id : routing.route(t.device_of(static_cast<Rank>(i)),
                                             t.device_of(static_cast<Rank>((i + shift) % nodes))))
          ++load[id];
      for (const auto& [id, flows] : load)
        ASSERT_EQ(flows, 1) << levels << " levels, shift " << shift << ": " << t[t[id].source].name
                            << " -> " << t[t[id].target].name;
    }
  }
}

TEST(Routing, ChannelsSpreadOverParallelLinks) {
  Topology t;
  t.add({.name = "a"});
  t.add({.name = "b"});
  for (int i = 0; i < 3; ++i)
    t.connect({.source = DeviceId{0},
               .target = DeviceId{1},
               .bandwidth = fast.bandwidth,
               .latency = fast.latency});
  Routing routing{t};
  std::set<LinkId> used;
  for (std::size_t channel = 0; channel < 3; ++channel)
    used.insert(routing.route(DeviceId{0}, DeviceId{1}, channel).front());
  EXPECT_EQ(used.size(), 3u);
  EXPECT_EQ(routing.equal_routes(DeviceId{0}, DeviceId{1}).size(), 3u);
}

TEST(Routing, DoesNotDependOnTheOrderOfQuestions) {
  const Topology t = cluster(make_node(server()), 6, FatTree{.cable = slow, .radix = 8});
  Routing forward{t}, backward{t};
  const std::size_t ranks = t.rank_count();
  std::map<std::pair<std::size_t, std::size_t>, std::vector<LinkId>> first;
  const auto ask = [&](Routing& routing, std::size_t i, std::size_t j) {
    return routing.route(t.device_of(static_cast<Rank>(i)), t.device_of(static_cast<Rank>(j)),
                         i % 3);
  };
  for (std::size_t i = 0; i < ranks; ++i)
    for (std::size_t j = 0; j < ranks; ++j) first[{i, j}] = ask(forward, i, j);
  for (std::size_t i = ranks; i-- > 0;)
    for (std::size_t j = ranks; j-- > 0;) ASSERT_EQ((first[{i, j}]), ask(backward, i, j));
}

}  // namespace
}  // namespace rehearse::topology_routing_test
