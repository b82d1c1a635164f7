// What textbooks of distributed training claim, each held against the simulator: when fusing,
// overlapping, hierarchy, smaller micro-batches, asynchrony, local steps, compression,
// recomputation and more servers pay, and when they do not.
#include <gtest/gtest.h>

#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/predict/server_run.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/places.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::claims_test {
namespace {

using Settings = std::vector<std::string>;

LoadedScenario load(const std::string& name, const Settings& settings) {
  return load_scenario(REHEARSE_SOURCE_DIR "/scenarios/" + name + ".toml", settings);
}

Prediction predicted(const std::string& name, const Settings& settings = {}) {
  const LoadedScenario loaded = load(name, settings);
  const ShapedRoofline cost;
  return StepPredictor(loaded.topology, cost).quick(loaded.scenario, loaded.workload);
}

double seconds_of(const std::string& name, const Settings& settings = {}) {
  return predicted(name, settings).step.seconds().count();
}

// The textbook's machine, which has no library: no launches, and every hop of a ring at its own
// latency.
const std::string no_library = "cluster.library={name='none'}";

ServerReport served(const Settings& settings) {
  const LoadedScenario loaded = load("straggler-async", settings);
  const ShapedRoofline cost;
  return predict_servers(loaded.scenario, loaded.workload, loaded.topology, cost, true).report;
}

TEST(Claim, FusingManySmallTensorsHelpsUntilTheyLeaveTooLate) {
  const double small = seconds_of("best-bucket", {"bucket_size=1MB", no_library});
  const double middle = seconds_of("best-bucket", {"bucket_size=16MB", no_library});
  const double large = seconds_of("best-bucket", {"bucket_size=64MB", no_library});
  EXPECT_GT(small, 2 * middle);
  EXPECT_GT(large, 1.05 * middle);
}

TEST(Claim, OverlapHidesCommunicationOnlyUntilTheBackwardPassEnds) {
  const std::string quick = "cluster.fabric.bandwidth=400Gbps",
                    slow = "cluster.fabric.bandwidth=1Gbps";
  const auto data = static_cast<std::size_t>(Dimension::data);
  const auto use = [&](const std::string& fabric, const char* overlap) {
    return predicted("vgg16-network-bound", {fabric, overlap});
  };
  const Prediction hidden = use(quick, "overlap_grad_reduce=true");
  EXPECT_LT(hidden.mean.exposed[data].ps(), hidden.step.ps() / 20);
  // Of 138 million gradients over a slow network no more is hidden than the backward pass is long.
  const Prediction bare = use(slow, "overlap_grad_reduce=false"),
                   partly = use(slow, "overlap_grad_reduce=true");
  const Time saved = bare.step - partly.step;
  EXPECT_GT(saved, Time{});
  EXPECT_LT(saved, bare.mean.compute);
  EXPECT_GT(partly.mean.exposed[data].ps(), partly.step.ps() / 2);
}

TEST(Claim, RingsAreForLargeSizesAndTreesForManyRanks) {
  const Topology machine = star(128, {BytesPerSecond{50e9}, 2_us});
  const auto time = [&](const char* algorithm, Bytes size) {
    return time_of(algorithm, CollectiveKind::all_reduce, machine, size);
  };
  EXPECT_LT(time("ring", 1_GiB), time("tree", 1_GiB));
  EXPECT_LT(10 * time("tree", 8_B), time("ring", 8_B));
}

TEST(Claim, HierarchyWinsWhereLinksBetweenNodesAreSlow) {
  const Topology machine = load_cluster(REHEARSE_SOURCE_DIR "/scenarios/two-racks.toml", {});
  const auto time = [&](const char* algorithm) {
    return time_of(algorithm, CollectiveKind::all_reduce, machine, 16_MiB);
  };
  for (const char* flat : {"ring", "tree", "halving_doubling"})
    EXPECT_LT(time("hierarchical"), time(flat)) << flat;
}

TEST(Claim, MoreMicroBatchesShrinkTheBubbleUntilKernelsAreTooSmall) {
  std::vector<Prediction> by_size;
  for (const char* size : {"mbs=1", "mbs=8", "mbs=32"})
    by_size.push_back(predicted("micro-batches", {size}));
  EXPECT_LT(by_size[0].bubble_fraction(), by_size[1].bubble_fraction());
  EXPECT_LT(by_size[1].bubble_fraction(), by_size[2].bubble_fraction());
  EXPECT_GT(by_size[0].mean.compute, by_size[1].mean.compute);
  EXPECT_LT(by_size[1].step, by_size[0].step);
  EXPECT_LT(by_size[1].step, by_size[2].step);
}

TEST(Claim, AStragglerCostsThoseWhoWaitAndMakesOthersStale) {
  const Settings calm{"slow_ranks=[]", "slow_rank_factor=1"}, slow{"slow_rank_factor=4"};
  const auto with = [](Settings settings, const char* mode) {
    settings.emplace_back(mode);
    return served(settings);
  };
  const char *waits = "server_mode=synchronous", *goes_on = "server_mode=asynchronous";
  EXPECT_LT(with(slow, waits).updates_per_second, with(calm, waits).updates_per_second / 3);
  EXPECT_GT(with(slow, goes_on).updates_per_second, 0.93 * with(calm, goes_on).updates_per_second);
  EXPECT_EQ(with(slow, waits).staleness.most, 0);
  // Fourteen others go on four times while the slow one computes.
  EXPECT_GT(with(slow, goes_on).staleness.most, 3 * with(calm, goes_on).staleness.most);
}

TEST(Claim, LocalStepsPayOnSlowNetworksAndHardlyOnFastOnes) {
  const auto gain = [](const std::string& bandwidth) {
    const std::string fabric = "cluster.fabric.bandwidth=" + bandwidth;
    return seconds_of("local-sgd-on-slow-network", {fabric, "interval=1"}) /
           seconds_of("local-sgd-on-slow-network", {fabric, "interval=8"});
  };
  EXPECT_GT(gain("1Gbps"), 4);
  EXPECT_LT(gain("100Gbps"), 1.2);
}

TEST(Claim, CompressionPaysOnSlowNetworksAndCostsOnFastOnes) {
  const auto gain = [](const std::string& bandwidth) {
    const std::string fabric = "cluster.fabric.bandwidth=" + bandwidth;
    return seconds_of("dgc-crossover", {fabric, no_library, "compression.method=none"}) /
           seconds_of("dgc-crossover", {fabric, no_library, "compression.method=dgc"});
  };
  EXPECT_GT(gain("1Gbps"), 2);
  EXPECT_LT(gain("100Gbps"), 1);
}

TEST(Claim, RecomputationCostsAThirdMoreCompute) {
  const auto compute = [](const char* how) {
    return predicted("recompute", {how}).mean.compute.seconds().count();
  };
  const double more = compute("recompute_granularity=full") / compute("recompute_granularity=none");
  EXPECT_NEAR(more, 4.0 / 3, 0.05);
}

TEST(Claim, OneServerIsTheBottleneckAndShardingMovesIt) {
  const double one = seconds_of("sharded-servers", {"servers=1"}),
               two = seconds_of("sharded-servers", {"servers=2"}),
               sixteen = seconds_of("sharded-servers", {"servers=16"});
  EXPECT_NEAR(one / two, 2, 0.1);
  EXPECT_LT(one / sixteen, 17);
  EXPECT_GT(one / sixteen, 12);
}

}  // namespace
}  // namespace rehearse::claims_test
