// NCCL's own model: its figures where they can be worked out by hand, and what it takes where.
#include "strategies/collectives/nccl_choice.hpp"

#include <gtest/gtest.h>

#include "strategies/collectives/choose.hpp"
#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::nccl_choice_test {
namespace {

constexpr CollectiveKind all_reduce = CollectiveKind::all_reduce;

TEST(NcclChoice, IsItsFormula) {
  const NcclGraph graph{.ranks = 8, .nodes = 1, .sm = 80, .nvlink = true, .intra = 240, .nic = 0};
  const auto time = [&](int version, const char* algorithm, const char* protocol, Bytes size) {
    return nccl_time(version, graph, all_reduce, algorithm, protocol, size).value_or(-1);
  };
  // base + 14 steps of 0.6 us; 8 bytes take no time worth mentioning.
  EXPECT_NEAR(time(223, "ring", "ll", 8_B), 6.6 + 14 * 0.6, 1e-3);
  EXPECT_NEAR(time(207, "ring", "ll", 8_B), 3.6 + 14 * 0.47, 1e-3);
  EXPECT_NEAR(time(223, "tree", "ll", 8_B), 6.8 + 14 * 0.6, 1e-3);
  // 240 GB/s on the bus are 240 n / 2(n-1) for the algorithm.
  EXPECT_NEAR(time(223, "ring", "simple", 1_GiB), 8.4 + 14 * 3.4 + 1073741.824 / (240 * 8.0 / 14),
              1e-3);
  EXPECT_EQ(time(223, "nvls", "ll", 8_B), -1) << "it speaks simple only";
  EXPECT_EQ(time(223, "halving_doubling", "ll", 8_B), -1);
}

TEST(NcclChoice, CountsHopsOfANetwork) {
  const NcclGraph graph{.ranks = 96, .nodes = 16, .sm = 70, .nvlink = true, .intra = 75, .nic = 24};
  // 2(N-1) hops over the network, the others within nodes: there 1 us for its proxy.
  EXPECT_NEAR(nccl_time(223, graph, all_reduce, "ring", "ll", 8_B).value_or(-1),
              6.6 + (190 - 30) * 1.0 + 30 * 2.7, 1e-2);
  EXPECT_NEAR(nccl_time(223, graph, all_reduce, "tree", "ll", 8_B).value_or(-1),
              6.8 + 2 * (5 * 0.6 + 4 * 5.0), 1e-2);
}

std::string taken(const Topology& machine, Bytes size, CollectiveKind kind = all_reduce,
                  int version = 0) {
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveChooser chooser(shape_of(kind, machine), routing, {.version = version});
  const Candidate best = chooser.best(size, engine);
  EXPECT_EQ(best.algorithm, chooser.at(size, engine).front().algorithm);
  EXPECT_EQ(best.protocol, chooser.at(size, engine).front().protocol);
  return std::string{best.algorithm} + " " + chooser.protocol_name(best.protocol);
}

TEST(NcclChoice, TakesWhatNcclTakes) {
  const Topology hopper = load_cluster("dgx-h100"), ampere = load_cluster("dgx-a100");
  EXPECT_EQ(taken(hopper, 1_GiB), "nvls simple");
  EXPECT_EQ(taken(ampere, 1_GiB), "ring simple");
  EXPECT_TRUE(taken(ampere, 8_B).ends_with(" ll"));
  EXPECT_EQ(taken(load_cluster("dgx-h100", {2, std::nullopt}), 1_GiB), "nvls_tree simple");
  // Many nodes and few bytes: trees.
  EXPECT_EQ(taken(load_cluster("dgx-a100", {64, std::nullopt}), 8_B), "tree ll");
  EXPECT_EQ(taken(ampere, 1_GiB, CollectiveKind::all_gather), "ring simple");
  // Two nodes behind few NICs: a tree sends half as much between them.
  EXPECT_EQ(taken(load_cluster("p4d", {2, std::nullopt}), 1_GiB), "tree simple");
}

TEST(NcclChoice, SpeaksLl128OverNvlinkOnly) {
  for (const Bytes size : {8_B, 64_KiB, 1_MiB, 16_MiB, 256_MiB})
    EXPECT_FALSE(taken(load_cluster("l40s-8"), size).ends_with("ll128")) << size.count();
  bool any = false;
  for (const Bytes size : {64_KiB, 512_KiB, 4_MiB})
    any = any || taken(load_cluster("dgx-a100"), size).ends_with("ll128");
  EXPECT_TRUE(any);
}

TEST(NcclChoice, LeavesOutWhatTheLibraryLacks) {
  const Topology machine = load_cluster("dgx-a100", {2, std::nullopt});
  Routing routing(machine);
  CollectiveChooser chooser(shape_of(all_reduce, machine), routing, {});
  bool said = false;
  for (const LeftOut& out : chooser.left_out())
    said = said || (out.algorithm == "halving_doubling" &&
                    out.reason.find("nccl has none such") != std::string::npos);
  EXPECT_TRUE(said);
  // By name it is still to be had.
  EXPECT_NO_THROW(CollectiveChooser(shape_of(all_reduce, machine), routing,
                                    {.algorithms = {"halving_doubling"}}));
}

}  // namespace
}  // namespace rehearse::nccl_choice_test
