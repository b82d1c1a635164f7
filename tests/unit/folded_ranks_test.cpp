// Who is simulated: representatives and groups of small machines, and which groups are alike.
#include "strategies/fold/folded_ranks.hpp"

#include <gtest/gtest.h>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/fold/step_network.hpp"
#include "topology/generators.hpp"

namespace rehearse::folded_ranks_test {
namespace {

constexpr Cable nvlink{100.0_GBps, 1_us}, fast{40.0_GBps, 2_us}, slow{20.0_GBps, 2_us};

/// Two GPUs on a switch of their own, each with its NIC.
Topology pair_node() {
  return make_node({.gpus = 2,
                    .nics = 2,
                    .switches = 2,
                    .sockets = 1,
                    .gpu_port = nvlink,
                    .nic_port = nvlink,
                    .uplink = nvlink,
                    .socket = nvlink,
                    .mesh = Mesh::nvswitch,
                    .nvlink = nvlink});
}

Rank r(std::size_t number) { return static_cast<Rank>(number); }

struct Families {
  explicit Families(Topology topology) : machine{std::move(topology)} {}
  const GroupFamily::Use& use(std::vector<GroupFamily::Group> groups) {
    family = std::make_unique<GroupFamily>(std::move(groups), routing, engine);
    return family->use(CollectiveKind::all_reduce, 1_MiB, "ring", "auto");
  }
  Topology machine;
  Routing routing{machine};
  Roofline cost;
  FastSimulator engine{routing, cost};
  std::unique_ptr<GroupFamily> family;
};

TEST(GroupsAlike, OnRails) {
  Families families(cluster(pair_node(), 4, RailOptimized{.cable = fast}));
  // GPU 0 of every node, and GPU 1 of every node: each on a rail of its own.
  const auto& use = families.use({{r(0), r(2), r(4), r(6)}, {r(1), r(3), r(5), r(7)}});
  ASSERT_EQ(use.entries.size(), 1u);
  EXPECT_EQ(use.entries[0].alike->groups, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(use.entries[0].cost.wire, Bytes{3 * (1 << 20) / 2 / LoadedLink::whole})
      << "2 (n-1)/n of the size on a link";
}

// Leaves of four ports: with two nodes on each the third has one alone, and its way is longer.
TEST(GroupsAlike, NotOnAnOddLeaf) {
  Families families(cluster(pair_node(), 3, FatTree{.cable = fast, .levels = 2, .radix = 8}));
  const auto& use = families.use({{r(0), r(2)}, {r(1), r(3)}, {r(0), r(4)}, {r(1), r(5)}});
  ASSERT_EQ(use.entries.size(), 2u);
  EXPECT_EQ(use.entries[0].alike->groups, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(use.entries[1].alike->groups, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_LT(use.entries[0].cost.time, use.entries[1].cost.time) << "one switch more on the way";
}

TEST(GroupsAlike, NotWhereACableIsSlower) {
  Topology machine = star(3, fast);
  const DeviceId odd = machine.add({.name = "gpu3"});
  const DeviceId hub = machine[LinkId{0}].target;
  machine.connect_both({odd, hub, slow.bandwidth, slow.latency});
  Families families(std::move(machine));
  const auto& use = families.use({{r(0), r(1)}, {r(2), r(3)}});
  EXPECT_EQ(use.entries.size(), 2u);
}

class Folding : public testing::Test {
 protected:
  /// All-reduces over the groups, and messages to the rank across from each.
  FoldedRanks fold(std::vector<GroupFamily::Group> groups, std::vector<std::uint32_t> pipeline_rank,
                   bool fold) {
    const GroupFamily::Use& use = families_.use(std::move(groups));
    std::vector<Traffic> traffic(2);
    traffic[0].lane = static_cast<std::uint32_t>(Lane::gradients);
    traffic[0].groups = families_.family->groups();
    for (const auto& entry : use.entries) traffic[0].entries.push_back(entry.alike);
    traffic[1].lane = static_cast<std::uint32_t>(Lane::forward);
    const std::size_t half = pipeline_rank.size() / 2;
    for (std::size_t i = 0; i < half; ++i)
      traffic[1].messages.push_back(
          {r(i), r(i + half),
           families_.routing.route(families_.machine.device_of(r(i)),
                                   families_.machine.device_of(r(i + half)))});
    return fold_ranks(pipeline_rank, traffic, families_.machine, fold);
  }
  Families families_{star(4, fast)};
};

TEST_F(Folding, OneRepresentativeForEachStage) {
  const FoldedRanks folded = fold({{r(0), r(1)}, {r(2), r(3)}}, {0, 0, 1, 1}, true);
  EXPECT_TRUE(folded.folded);
  ASSERT_EQ(folded.representatives.size(), 2u);
  EXPECT_EQ(folded.representatives[0].ranks, 2u);
  EXPECT_EQ(folded.representatives[1].rank, r(2));
  EXPECT_EQ(folded.begin, (std::vector<std::uint32_t>{0, 1, 2}));
  ASSERT_EQ(folded.traffic[0].groups.size(), 2u) << "one for the groups of each stage";
  EXPECT_EQ(folded.traffic[0].groups[0].representatives, (std::vector<std::uint32_t>{0}));
  ASSERT_EQ(folded.traffic[1].groups.size(), 1u);
  EXPECT_EQ(folded.traffic[1].groups[0].representatives, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(folded.traffic[1].groups[0].stands_for, 2u);
  EXPECT_EQ(folded.traffic[1].of_representative,
            (std::vector<std::uint32_t>{0, FoldedRanks::none}));
}

TEST_F(Folding, EveryRankIsSimulatedWhenAskedTo) {
  const FoldedRanks whole = fold({{r(0), r(1)}, {r(2), r(3)}}, {0, 0, 1, 1}, false);
  EXPECT_FALSE(whole.folded);
  EXPECT_EQ(whole.representatives.size(), 4u);
  EXPECT_EQ(whole.traffic[1].groups.size(), 2u);
  for (const FoldedRanks::Representative& representative : whole.representatives)
    EXPECT_EQ(representative.ranks, 1u);
}

// Ranks of a link that gradients and messages share know of each other.
TEST_F(Folding, GroupsKnowWhomTheyMeet) {
  const FoldedRanks folded = fold({{r(0), r(1)}, {r(2), r(3)}}, {0, 0, 1, 1}, true);
  const FoldedRanks::Group& gradients = folded.traffic[0].groups[0];
  EXPECT_NE(gradients.lanes_met & 1u << static_cast<unsigned>(Lane::forward), 0u);
  EXPECT_FALSE(gradients.crossings.empty());
}

TEST_F(Folding, GroupsAcrossStagesOfUnlikeRanksAreNotFolded) {
  // Rank 1 is in no group with rank 0: rank 3 is in its place.
  const FoldedRanks folded = fold({{r(0), r(2)}, {r(1), r(3)}}, {0, 0, 0, 1}, true);
  std::uint32_t ranks = 0;
  for (const FoldedRanks::Representative& representative : folded.representatives)
    ranks += representative.ranks;
  EXPECT_EQ(ranks, 4u);
  EXPECT_GT(folded.representatives.size(), 2u);
}

}  // namespace
}  // namespace rehearse::folded_ranks_test
