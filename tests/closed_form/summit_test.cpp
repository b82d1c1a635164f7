// How the latency of ring and tree grows on a Summit-like machine, up to 24,576 GPUs: 6 GPUs a
// node, dual-rail EDR, leaves of 9 nodes, a third level of switches beyond 324 nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::summit_test {
namespace {

struct Point {
  std::size_t ranks = 0;
  Time time, alpha;  // of 8 bytes; of the slowest hop
};

Point measure(std::string_view name, std::size_t nodes, Bytes size = 8_B) {
  // Without its library, whose rings pay the mean of their hops and whose trees are chains in
  // nodes.
  const Topology summit = parse_cluster("extends = 'summit'\n[library]\nname = 'none'\n",
                                        "summit.toml", {nodes, std::nullopt});
  Routing routing(summit);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveRehearsal rehearsal(algorithm(name), shape_of(CollectiveKind::all_reduce, summit),
                                routing, Detail::folded);
  return {summit.rank_count(), rehearsal.run(size, engine).time, rehearsal.alpha()};
}

double per_rank(const Point& at) {
  return at.time.seconds().count() / static_cast<double>(at.ranks);
}

double per_level(const Point& at) {
  return at.time.seconds().count() / std::log2(static_cast<double>(at.ranks));
}

constexpr std::size_t node_counts[] = {16, 64, 256, 1024, 2048, 4096};

TEST(Summit, RingLatencyGrowsInProportionToRanks) {
  for (const std::size_t nodes : node_counts) {
    const Point at = measure("ring", nodes);
    const auto steps = 2 * (static_cast<std::int64_t>(at.ranks) - 1);
    EXPECT_GE(at.time, steps * at.alpha) << "2 (n-1) alpha, " << at.ranks << " GPUs";
    // Beside alpha, 4 bytes at LL's half payload share a rail: far below a nanosecond each.
    EXPECT_LE(at.time, steps * (at.alpha + 2_ns)) << at.ranks << " GPUs";
  }
  // Alpha itself steps up once, when hops between far leaves go over a third level; on either side
  // of that step the time per rank is the same within what 2 (n-1) / n says: 1/n.
  const Point least = measure("ring", 16), small = measure("ring", 256);
  EXPECT_NEAR(per_rank(small) / per_rank(least), 1, 0.012) << "96 and 1,536 GPUs, two levels";
  const Point large = measure("ring", 1024), most = measure("ring", 4096);
  EXPECT_EQ(most.ranks, 24'576u);
  EXPECT_NEAR(per_rank(most) / per_rank(large), 1, 0.001) << "6,144 and 24,576 GPUs, three levels";
  EXPECT_NEAR(per_rank(most) / per_rank(least),
              most.alpha.seconds().count() / least.alpha.seconds().count(), 0.02);
}

TEST(Summit, TreeLatencyGrowsWithTheLogarithmOfRanks) {
  const Point least = measure("tree", 16);
  double lowest = per_level(least), highest = lowest;
  Point before = least;
  for (const std::size_t nodes : node_counts) {
    const Point at = measure("tree", nodes);
    lowest = std::min(lowest, per_level(at));
    highest = std::max(highest, per_level(at));
    EXPECT_GE(at.time, before.time);
    before = at;
  }
  EXPECT_LE(highest / lowest, 2) << "one band, across the step in alpha and the step into a node";
  const Point large = measure("tree", 1024), most = measure("tree", 4096);
  EXPECT_EQ(most.ranks, 24'576u);
  EXPECT_NEAR(per_level(most) / per_level(large), 1, 0.05) << "6,144 and 24,576 GPUs";
  EXPECT_LE(most.time.seconds().count() / least.time.seconds().count(), 4)
      << "256 times the GPUs, 2.2 times their logarithm";
  EXPECT_GE(measure("ring", 4096).time, 1000 * most.time) << "what a tree is for";
}

TEST(Summit, FoldingChangesNothingWhereLeavesAreUneven) {
  // 9 nodes fill a leaf: 10 and 19 nodes leave one alone on the last.
  for (const std::size_t nodes : {2, 9, 10, 19}) {
    const Topology summit = load_cluster("summit", {nodes, std::nullopt});
    for (const std::string_view name : {"ring", "tree", "hierarchical"})
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather})
        for (const Bytes size : {8_B, Bytes{99'999}, 256_MiB}) {
          if (algorithm(name).refusal(shape_of(kind, summit), summit)) continue;
          EXPECT_EQ(time_of(name, kind, summit, size, Detail::folded),
                    time_of(name, kind, summit, size, Detail::transfers))
              << name << " " << to_string(kind) << ", " << nodes << " nodes, " << size.count();
        }
  }
}

}  // namespace
}  // namespace rehearse::summit_test
