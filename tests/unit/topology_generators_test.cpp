// Shapes: how many devices and links, who has which degree, how much crosses the middle.
#include "topology/generators.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "sim/base/error.hpp"
#include "topology/routing.hpp"

namespace rehearse::topology_generators_test {
namespace {

constexpr Cable cable{BytesPerSecond{100e9}, Time::picoseconds(1'000'000)};
constexpr Cable wire{BytesPerSecond{50e9}, Time::picoseconds(500'000)};

NodeShape server() {
  return {.gpus = 8,
          .nics = 8,
          .switches = 4,
          .sockets = 2,
          .gpu_port = cable,
          .nic_port = cable,
          .uplink = cable,
          .socket = cable,
          .memory = cable,
          .mesh = Mesh::nvswitch,
          .nvlink = cable,
          .reduces = true};
}

std::map<DeviceId, std::size_t> degrees(const Topology& t) {
  std::map<DeviceId, std::size_t> out;
  for (const Link& link : t.links()) ++out[link.source];
  return out;
}

std::size_t count(const Topology& t, std::string_view prefix) {
  std::size_t found = 0;
  for (const Device& d : t.devices()) found += d.name.starts_with(prefix);
  return found;
}

double bandwidth_out_of(const Topology& t, std::string_view name) {
  double sum = 0;
  for (const Link& link : t.links())
    if (t[link.source].name == name) sum += link.bandwidth.count();
  return sum;
}

std::string message_of(auto work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "built";
}

TEST(Generators, PlainShapes) {
  EXPECT_EQ(ring(8, cable).links().size(), 16u);
  EXPECT_EQ(ring(2, cable).links().size(), 2u);
  EXPECT_EQ(ring(1, cable).links().size(), 0u);
  EXPECT_EQ(fully_connected(8, cable).links().size(), 56u);
  EXPECT_EQ(star(8, cable).links().size(), 16u);
  const std::size_t plane[] = {4, 5}, cube[] = {3, 4, 5}, flat[] = {2, 1, 4};
  for (const auto& [device, degree] : degrees(torus(plane, cable))) EXPECT_EQ(degree, 4u);
  for (const auto& [device, degree] : degrees(torus(cube, cable))) EXPECT_EQ(degree, 6u);
  for (const auto& [device, degree] : degrees(torus(flat, cable))) EXPECT_EQ(degree, 3u);
}

TEST(Generators, ServerHangsDevicesEvenly) {
  const Topology node = make_node(server());
  EXPECT_EQ(node.devices().size(), 8u + 8 + 1 + 4 + 2 + 2);
  EXPECT_EQ(node.links().size(), 2u * (8 + 8 + 8 + 4 + 1 + 2));
  EXPECT_EQ(node.rank_count(), 8u);
  const auto degree = degrees(node);
  for (std::size_t d = 0; d < node.devices().size(); ++d) {
    const Device& device = node.devices()[d];
    if (device.name.starts_with("pcie")) {
      EXPECT_EQ(degree.at(static_cast<DeviceId>(d)), 5u);
    }
    EXPECT_EQ(device.reduces, device.name == "nvswitch0");
  }
}

TEST(Generators, CubeMeshHasSixLinksEach) {
  NodeShape shape = server();
  shape.mesh = Mesh::hybrid_cube_mesh;
  shape.gpu_port = shape.nic_port = shape.uplink = {};
  shape.sockets = shape.switches = shape.nics = 0;
  const Topology node = make_node(shape);
  for (std::size_t g = 0; g < 8; ++g)
    EXPECT_EQ(bandwidth_out_of(node, "gpu" + std::to_string(g)), 6 * 100e9);
}

TEST(Generators, FewerGpusKeepTheRest) {
  const Topology fewer = with_fewer_gpus(make_node(server()), 3);
  EXPECT_EQ(fewer.rank_count(), 3u);
  EXPECT_EQ(fewer.devices().size(), 25u - 5);
  EXPECT_EQ(fewer.links().size(), 62u - 5 * 4);
}

TEST(Generators, NodesAreCopiesAtAnOffset) {
  const Topology node = make_node(server());
  const Topology t = cluster(node, 3, Star{.cable = wire});
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t d = 0; d < node.devices().size(); ++d) {
      const Device& copy = t.devices()[n * node.devices().size() + d];
      EXPECT_EQ(copy.name, "node" + std::to_string(n) + "/" + node.devices()[d].name);
      EXPECT_EQ(copy.kind, node.devices()[d].kind);
      EXPECT_EQ(index(copy.node), n);
    }
  EXPECT_EQ(t.node_count(), 3u);
}

TEST(Generators, FatTreeKeepsItsRatio) {
  const Topology one = fully_connected(1, cable);
  for (const double ratio : {1.0, 2.0, 3.0, 1.5}) {
    const FatTree tree{.cable = wire, .levels = 2, .radix = 16, .oversubscription = ratio};
    const Topology t = cluster(one, 48, tree);
    double down = 0, up = 0;
    for (const Link& link : t.links())
      if (t[link.source].name == "leaf0")
        (t[link.target].kind == DeviceKind::gpu ? down : up) += link.bandwidth.count();
    EXPECT_NEAR(down / up, ratio, 1e-9);
  }
}

TEST(Generators, ThreeLevelsHaveFullBisection) {
  // radix 4: pods of 2 leaves with 2 hosts each; 8 hosts make 2 pods, 4 spines, 4 cores.
  const Topology t =
      cluster(fully_connected(1, cable), 8, FatTree{.cable = wire, .levels = 3, .radix = 4});
  EXPECT_EQ(count(t, "leaf"), 4u);
  EXPECT_EQ(count(t, "spine"), 4u);
  EXPECT_EQ(count(t, "core"), 4u);
  double into_cores = 0;
  for (const Link& link : t.links())
    if (t[link.target].name.starts_with("core")) into_cores += link.bandwidth.count();
  EXPECT_EQ(into_cores, 8 * 50e9);
}

TEST(Generators, RailsKeepNicsApart) {
  const Topology t = cluster(make_node(server()), 40, RailOptimized{.cable = wire, .radix = 32});
  EXPECT_EQ(count(t, "leaf"), 8u * 3);
  EXPECT_EQ(count(t, "spine"), 16u);
  for (const Link& link : t.links()) {
    const std::string &from = t[link.source].name, &to = t[link.target].name;
    if (!to.starts_with("leaf") || t[link.source].kind != DeviceKind::nic) continue;
    EXPECT_EQ(std::stoul(to.substr(4)) / 3, std::stoul(from.substr(from.find("nic") + 3)));
  }
}

TEST(Generators, DragonflyJoinsAllGroups) {
  const Dragonfly fly{.cable = wire,
                      .local = wire,
                      .global = wire,
                      .routers_per_group = 4,
                      .nodes_per_router = 2,
                      .globals_per_router = 2};
  const Topology t = cluster(fully_connected(1, cable), 72, fly);  // 9 groups of 8: a full one
  EXPECT_EQ(count(t, "router"), 36u);
  std::size_t global = 0;
  for (const Link& link : t.links()) {
    const std::string &from = t[link.source].name, &to = t[link.target].name;
    if (from.starts_with("router") && to.starts_with("router"))
      global += std::stoul(from.substr(6)) / 4 != std::stoul(to.substr(6)) / 4;
  }
  EXPECT_EQ(global, 9u * 8);
  Routing routing{t};  // at most local, global, local between routers
  for (std::size_t r = 1; r < 72; ++r)
    EXPECT_LE(routing.route(t.device_of(Rank{0}), t.device_of(static_cast<Rank>(r))).size(), 5u);
}

TEST(Generators, SaysWhyNot) {
  const Topology node = make_node(server());
  EXPECT_EQ(message_of([&] { cluster(node, 1'000'000'000'000, Star{.cable = wire}); }),
            "error: 1000000000000 nodes x 25 devices are more than the 1048576 devices supported");
  EXPECT_EQ(message_of([&] { cluster(node, 2, {}); }),
            "error: 2 nodes, and no fabric to join them");
  EXPECT_EQ(message_of([&] {
              cluster(node, 6, TorusFabric{wire, wire, {4, 2}});
            }),
            "error: a torus of 4 x 2 has 8 places for 6 nodes");
  EXPECT_EQ(
      message_of([&] { cluster(node, 64, FatTree{.cable = wire, .levels = 2, .radix = 16}); }),
      "error: 512 ports on leaves of 8 need 64 leaves, and a spine has 16 ports; use levels = 3");
}

// A bound far above what it takes (20 ms and 10 ms), so that a busy machine does not fail it.
TEST(Generators, SixteenThousandGpusAreQuick) {
  const auto begin = std::chrono::steady_clock::now();
  const Topology t = cluster(make_node(server()), 2048, RailOptimized{.cable = wire});
  Routing routing{t};
  std::size_t hops = 0;
  for (std::size_t r = 0; r < t.rank_count(); ++r)
    hops += routing.route(t.ranks()[r], t.ranks()[(r + 1) % t.rank_count()]).size();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(t.rank_count(), 16384u);
  EXPECT_GT(hops, t.rank_count());
  EXPECT_LT(took.count(), 5.0);
}

}  // namespace
}  // namespace rehearse::topology_generators_test
