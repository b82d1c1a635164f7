// The catalog: every machine loads, alone and in numbers, everyone reaches everyone, and no rate is
// off by a power of ten.
#include "topology/formats/catalog.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "topology/files/document.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/formats/libraries.hpp"
#include "topology/routing.hpp"

namespace rehearse::topology_catalog_test {
namespace {

bool has_fabric(const CatalogEntry& entry) {
  return entry.toml.find("[fabric]") != std::string_view::npos ||
         entry.toml.find("extends") != std::string_view::npos;
}

TEST(Catalog, IsSortedAndTitled) {
  std::string_view before;
  for (const CatalogEntry& entry : catalog()) {
    EXPECT_LT(before, entry.name);
    before = entry.name;
    const Value document = parse_toml_document(entry.toml, std::string{entry.name});
    ASSERT_TRUE(document.find("title")) << entry.name;
    EXPECT_EQ(*document.find("name")->text(), entry.name);
  }
  EXPECT_GE(catalog().size(), 15u);
}

TEST(Catalog, EveryRankReachesEveryOther) {
  for (const CatalogEntry& entry : catalog()) {
    SCOPED_TRACE(entry.name);
    ClusterOverrides overrides;
    if (has_fabric(entry)) overrides.nodes = 3;
    const Topology t = load_cluster(std::string{entry.name}, overrides);
    EXPECT_EQ(t.node_count(), has_fabric(entry) ? 3u : 1u);
    Routing routing{t};
    for (const DeviceId a : t.ranks())
      for (const DeviceId b : t.ranks()) {
        if (a == b) continue;
        const auto route = routing.route(a, b);
        Time latency;
        for (const LinkId l : route) latency += t[l].latency;
        ASSERT_GE(latency, 100_ns);
        ASSERT_LT(latency, 100_us);
        ASSERT_EQ(routing.route(b, a).size(), route.size());
      }
  }
}

// What a library reaches of a host's network: of two hosts less than of three.
double network_rate(const Topology& machine) {
  double least = 1e18;
  for (const Link& link : machine.links())
    if (link.kind == LinkKind::network) least = std::min(least, link.bandwidth.count());
  return least;
}

TEST(Catalog, TcpIsNoFasterThanItsSockets) {
  const Medium& tcp = library_table().media.find("tcp")->second;
  ASSERT_GT(tcp.most.count(), 0);
  EXPECT_NEAR(network_rate(load_cluster("t4-4", {.nodes = 3})), tcp.most.count(), 1);
  EXPECT_NEAR(network_rate(load_cluster("t4-4", {.nodes = 2})), tcp.pair.count() / 2, 1);
  // A cable that is slower is reached as far as TCP reaches any.
  const char* slow = "extends = 't4-4'\nnodes = 3\n[fabric]\nbandwidth = '1Gbps'\n";
  EXPECT_NEAR(network_rate(parse_cluster(slow, "slow.toml")), tcp.efficiency * 1e9 / 8, 1);
}

TEST(Catalog, RatesAreSane) {
  for (const CatalogEntry& entry : catalog()) {
    SCOPED_TRACE(entry.name);
    const Topology t = load_cluster(std::string{entry.name});
    ASSERT_EQ(t.accelerators.size(), 1u);
    const Accelerator& accelerator = t.accelerators.front();
    EXPECT_GE(accelerator.memory, 16_GiB - 2_GiB);
    EXPECT_GT(accelerator.memory_bandwidth.count(), 100e9);
    EXPECT_LT(accelerator.memory_bandwidth.count(), 10e12);
    EXPECT_FALSE(accelerator.peaks.empty());
    for (const Accelerator::Peak& peak : accelerator.peaks) {
      EXPECT_GE(peak.rate.count(), 1e12) << peak.precision;
      EXPECT_LE(peak.rate.count(), 1e16) << peak.precision;
    }
    for (const Link& link : t.links()) {
      EXPECT_GE(link.bandwidth.count(), 1e9);
      EXPECT_LE(link.bandwidth.count(), 1e12);
    }
  }
}

// What libraries reach of a data sheet: below it, and within what anybody has measured.
TEST(Catalog, BehaviourIsSane) {
  for (const CatalogEntry& entry : catalog()) {
    SCOPED_TRACE(entry.name);
    const Accelerator device = load_cluster(std::string{entry.name}).accelerators.front();
    const bool is_ideal = entry.name == "ring-8";
    EXPECT_EQ(device.compute_units == 1, is_ideal);
    EXPECT_LE(device.compute_units, 304u);
    EXPECT_EQ(device.launch_overhead < 1_us, is_ideal);
    EXPECT_LE(device.launch_overhead, 10_us);
    EXPECT_EQ(device.memory_efficiency == 1, is_ideal);
    EXPECT_GE(device.memory_efficiency, 0.7);
    EXPECT_LE(device.memory_ramp, Bytes{8'000'000});
    EXPECT_LE(device.communication_share, 0.3);
    EXPECT_LE(device.k_ramp, 500);
    EXPECT_LE(device.tile_ramp, 50);
    for (const Accelerator::Peak& peak : device.peaks) {
      EXPECT_EQ(peak.efficiency == 1, is_ideal) << peak.precision;
      EXPECT_GE(peak.efficiency, 0.5) << peak.precision;
    }
  }
}

// Numbers from the world carry their source: every line with a quantity has a comment.
TEST(Catalog, EveryQuantityHasItsSource) {
  for (const CatalogEntry& entry : catalog()) {
    std::istringstream lines{std::string{entry.toml}};
    for (std::string line; std::getline(lines, line);) {
      const auto equals = line.find(" = ");
      if (equals == std::string::npos || line.starts_with("#")) continue;
      const char first = line[line.find_first_not_of(" \"", equals + 3)];
      const bool is_text = line.starts_with("name") || line.starts_with("title");
      const bool is_structural = line.starts_with("schema") || line.starts_with("nodes");
      if (is_text || is_structural || first < '0' || first > '9') continue;
      EXPECT_NE(line.find("# "), std::string::npos) << entry.name << ": " << line;
    }
  }
}

TEST(Catalog, OverridesChangeTheNumberOfNodesAndGpus) {
  const Topology t = load_cluster("dgx-h100", {.nodes = 4, .gpus_per_node = 2});
  EXPECT_EQ(t.rank_count(), 8u);
  EXPECT_EQ(t.node_count(), 4u);
  EXPECT_EQ(load_cluster("ring-8", {.nodes = {}, .gpus_per_node = 5}).rank_count(), 5u);
}

TEST(Catalog, SummitGrowsToItsWholeSize) {
  const Topology t = load_cluster("summit", {.nodes = 4096});
  EXPECT_EQ(t.rank_count(), 24576u);
  Routing routing{t};
  EXPECT_FALSE(routing.route(t.ranks().front(), t.ranks().back()).empty());
}

}  // namespace
}  // namespace rehearse::topology_catalog_test
