// Lower bounds of collectives: equal to the textbook's where one algorithm reaches them.
#include "sim/engine/collective_bound.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "topology/generators.hpp"

namespace rehearse::collective_bound_test {
namespace {

constexpr double rate = 1e10;
constexpr Bytes size{800'000'000};

std::vector<Rank> all_of(const Topology& topology) {
  std::vector<Rank> group;
  for (std::size_t r = 0; r < topology.rank_count(); ++r) group.push_back(static_cast<Rank>(r));
  return group;
}

// Bandwidth bound in units of size / rate.
double share(CollectiveKind kind, const Topology& topology, std::uint32_t root = 0) {
  const CollectiveBound bound =
      collective_lower_bound(kind, all_of(topology), size, topology, root);
  return bound.bandwidth.seconds().count() * rate / static_cast<double>(size.count());
}

TEST(CollectiveBound, IsTheTextbooksOnASwitch) {
  const Topology topology = star(8, {BytesPerSecond{rate}, 1_us});
  using enum CollectiveKind;
  constexpr double rounding = 1e-6;
  EXPECT_NEAR(share(all_reduce, topology), 2 * 7.0 / 8, rounding);
  EXPECT_NEAR(share(reduce_scatter, topology), 7.0 / 8, rounding);
  EXPECT_NEAR(share(all_gather, topology), 7.0 / 8, rounding);
  EXPECT_NEAR(share(all_to_all, topology), 7.0 / 8, rounding);
  EXPECT_NEAR(share(broadcast, topology, 3), 1, rounding);
  EXPECT_NEAR(share(reduce, topology, 3), 1, rounding);
  EXPECT_NEAR(share(send_recv, topology), 1, rounding);
  for (const CollectiveKind kind : {all_reduce, all_gather, all_to_all, broadcast, reduce}) {
    const CollectiveBound bound = collective_lower_bound(kind, all_of(topology), size, topology);
    EXPECT_EQ(bound.latency, 2_us) << to_string(kind);
  }
}

TEST(CollectiveBound, ASwitchThatReducesHalvesTheAllReduce) {
  const Topology topology = star(8, {BytesPerSecond{rate}, 1_us}, true);
  EXPECT_NEAR(share(CollectiveKind::all_reduce, topology), 1, 1e-6);
}

TEST(CollectiveBound, TheNarrowestPlaceLimits) {
  Topology topology;
  const DeviceId hub = topology.add({.name = "hub", .kind = DeviceKind::network_switch});
  for (int i = 0; i < 4; ++i) {
    const DeviceId gpu = topology.add({.name = "gpu" + std::to_string(i)});
    const double bandwidth = i == 2 ? rate / 10 : rate;
    topology.connect_both(
        {.source = gpu, .target = hub, .bandwidth = BytesPerSecond{bandwidth}, .latency = 1_us});
  }
  const CollectiveBound bound =
      collective_lower_bound(CollectiveKind::all_to_all, all_of(topology), size, topology);
  EXPECT_EQ(bound.limiting, "out of gpu2");
  EXPECT_NEAR(bound.bandwidth.seconds().count(), 0.06 * 10, 1e-6);
}

// Two nodes of four GPUs, one NIC each at a quarter of a GPU's rate.
TEST(CollectiveBound, ANodesBorderLimits) {
  Topology topology;
  const DeviceId fabric = topology.add({.name = "fabric", .kind = DeviceKind::network_switch});
  for (std::uint32_t n = 0; n < 2; ++n) {
    const auto node = static_cast<NodeId>(n);
    const std::string prefix = "node" + std::to_string(n) + "/";
    const DeviceId hub =
        topology.add({.name = prefix + "switch", .kind = DeviceKind::network_switch, .node = node});
    const DeviceId nic =
        topology.add({.name = prefix + "nic", .kind = DeviceKind::nic, .node = node});
    const auto cable = [&](DeviceId a, DeviceId b, double bandwidth) {
      topology.connect_both(
          {.source = a, .target = b, .bandwidth = BytesPerSecond{bandwidth}, .latency = 1_us});
    };
    for (int i = 0; i < 4; ++i)
      cable(topology.add({.name = prefix + "gpu" + std::to_string(i), .node = node}), hub, rate);
    cable(hub, nic, rate);
    cable(nic, fabric, rate / 4);
  }
  using enum CollectiveKind;
  EXPECT_NEAR(share(all_reduce, topology), 4, 1e-5);        // S through the NIC
  EXPECT_NEAR(share(all_gather, topology), 4 * 0.5, 1e-5);  // half of S
  EXPECT_NEAR(share(all_to_all, topology), 4 * 2, 1e-5);    // 4 · 4 / 8 of S
  EXPECT_NEAR(share(send_recv, topology), 4, 1e-5);         // one pair each way
  const CollectiveBound bound =
      collective_lower_bound(all_reduce, all_of(topology), size, topology);
  EXPECT_EQ(bound.limiting, "out of node 0");
  EXPECT_EQ(bound.latency, 6_us);
}

TEST(CollectiveBound, RelaysMayBeatTheRouteSoTheShortestWayCounts) {
  const Topology topology = ring(6, {BytesPerSecond{rate}, 1_us});
  const CollectiveBounds bounds{CollectiveKind::all_reduce, all_of(topology), topology};
  EXPECT_EQ(bounds.at(8_B).latency, 3_us);
}

TEST(CollectiveBound, NothingToSayCostsNothing) {
  const Topology topology = star(4, {BytesPerSecond{rate}, 1_us});
  const std::vector<Rank> alone{Rank{2}};
  EXPECT_EQ(collective_lower_bound(CollectiveKind::all_reduce, alone, size, topology).least(),
            Time{});
  EXPECT_EQ(
      collective_lower_bound(CollectiveKind::all_reduce, all_of(topology), 0_B, topology).least(),
      Time{});
  // Eight bytes make two elements: two of the four ranks have no part, so no pair must speak.
  EXPECT_EQ(
      collective_lower_bound(CollectiveKind::all_gather, all_of(topology), 8_B, topology).latency,
      Time{});
}

TEST(CollectiveBound, RefusesAnAnswerTooFastAndSaysWhy) {
  const Topology topology = star(4, {BytesPerSecond{rate}, 1_us});
  const CollectiveBounds bounds{CollectiveKind::all_reduce, all_of(topology), topology};
  EXPECT_NO_THROW(bounds.check(size, 120'000_us));
  try {
    bounds.check(size, 119'990_us);
    FAIL() << "an all-reduce faster than its links was accepted";
  } catch (const CheckFailed& failure) {
    EXPECT_STREQ(failure.what(),
                 "impossible result: all_reduce of 800000000 bytes on 4 ranks in 119990000000 ps, "
                 "but it needs 120000000000 ps: its bytes must go out of all ranks first");
  }
  EXPECT_THROW(bounds.check(8_B, 1_us), CheckFailed);
  EXPECT_NO_THROW(bounds.check(8_B, 2_us));
}

}  // namespace
}  // namespace rehearse::collective_bound_test
