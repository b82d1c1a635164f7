// Imperfect machines against what the textbooks say of them: the slowest rank decides, the expected
// maximum of n draws, pauses that add up.
#include "strategies/plan/imperfections.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sim/scenario/scenario_machine.hpp"
#include "strategies/plan/draws.hpp"
#include "strategies/predict/step_times.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::imperfections_test {
namespace {

constexpr Time product = 30_us, weights = 20_us;
constexpr std::int64_t layers = 6;
const EqualLayers model{.count = layers, .width = 256};
constexpr Time compute = layers * (2 * product + weights);  // of a step with one micro-batch

const ProductCost& cost() {
  static const ProductCost known(product, weights, model.samples);
  return known;
}

Scenario scenario_with(const Imperfection& imperfection) {
  Scenario scenario = model.scenario(1);
  scenario.collectives.all_reduce = "ring";
  scenario.imperfection = imperfection;
  return scenario;
}

Prediction run(const Scenario& scenario, const Topology& machine) {
  return StepPredictor(machine, cost()).predict(scenario, model.workload(), {}).prediction;
}

TEST(Imperfections, OneSlowRankGivesDataParallelismItsOwnTime) {
  for (const std::size_t ranks : {2, 4, 8})
    for (const double factor : {1.25, 2.0, 7.0}) {
      const Topology machine = calm_star(ranks, {5.0_GBps, 1_us});
      const Time calm = run(scenario_with({}), machine).step;
      const Prediction told =
          run(scenario_with({.slow_ranks = {ranks - 1}, .slow_rank_factor = factor}), machine);
      const auto longer = Time::picoseconds(
          static_cast<std::int64_t>(static_cast<double>(compute.ps()) * (factor - 1)));
      EXPECT_EQ(told.step, calm + longer) << "everybody waits for rank " << ranks - 1;
      ASSERT_EQ(told.roles.size(), 2u) << "one is slow, all others are alike";
      EXPECT_EQ(told.roles[0].ranks, ranks - 1);
      EXPECT_EQ(told.roles[1].time.compute, compute + longer);
      EXPECT_EQ(told.roles[0].time.bubble, longer) << "the others wait for as long";
    }
}

// A ring goes as fast as its slowest cable: 2(n-1)(α + S/nβ).
TEST(Imperfections, OneSlowCableIsTheRings) {
  const Topology machine = calm_star(4, {5.0_GBps, 1_us});
  for (const double factor : {2.0, 5.0}) {
    const Scenario scenario = scenario_with(
        {.slow_cables = {2}, .slow_cable_factor = factor, .slow_cable_latency = 3_us});
    const Topology slow = machine_for(scenario, machine);
    const Topology all_slow = calm_star(4, {BytesPerSecond{5e9 / factor}, 4_us});
    const Bytes size{2 * model.parameters()};
    EXPECT_EQ(slow.links().size(), machine.links().size());
    const Time ring = time_of("ring", CollectiveKind::all_reduce, slow, size);
    EXPECT_EQ(run(scenario, slow).step, compute + ring);
    EXPECT_LE(ring, time_of("ring", CollectiveKind::all_reduce, all_slow, size));
    // Two of the four hops of every step touch the slow cable, each once.
    EXPECT_EQ(ring, 6 * (2 * 1_us + 3_us) +
                        6 * Time::round(Bytes{size.count() / 4} / BytesPerSecond{5e9 / factor}));
  }
}

TEST(Imperfections, TheCableOfARankIsTheOneThatLeavesItsNode) {
  const Topology machine = load_cluster("dgx-h100", {.nodes = 2});
  const Topology slow =
      machine_for(scenario_with({.slow_cables = {3}, .slow_cable_factor = 4}), machine);
  std::size_t changed = 0;
  for (std::size_t l = 0; l < machine.links().size(); ++l) {
    const Link &before = machine.links()[l], &after = slow.links()[l];
    if (before == after) continue;
    ++changed;
    EXPECT_EQ(after.bandwidth.count(), before.bandwidth.count() / 4);
    EXPECT_NE(machine[before.source].node, machine[before.target].node);
  }
  EXPECT_EQ(changed, 2u) << "both directions of one cable";
}

// A rank that computes for T pauses floor((phase + T) / P) times; here all have the same phase.
TEST(Imperfections, PausesAddUp) {
  const Topology machine = free_star(4);
  for (const Time every : {7_us, 60_us, 100_us, 479_us, 480_us, 481_us})
    for (const Time length : {1_us, 50_us}) {
      const Imperfection imperfection{
          .pause_every = every, .pause_length = length, .pause_together = true};
      const Prediction told = run(scenario_with(imperfection), machine);
      const double phase = uniform_draw({1, DrawFor::pause, 0}) * every.seconds().count();
      const std::int64_t pauses = (Time::round(Seconds{phase}) + compute).ps() / every.ps();
      EXPECT_NEAR(static_cast<double>(pauses), compute.seconds().count() / every.seconds().count(),
                  1);
      EXPECT_EQ(told.step, compute + pauses * length)
          << pauses << " pauses of " << length.ps() << " ps in " << compute.ps();
      EXPECT_EQ(told.roles.size(), 1u) << "all pause together, so all are alike";
    }
}

// Each rank has its own phase u, uniform in [0, P): with T < P it pauses with probability T / P,
// and the step is longer when any of n does: 1 - (1 - T/P)^n of the steps.
TEST(Imperfections, PausesOfTheirOwnCostMoreTheMoreRanksThereAre) {
  const Time every = 4 * compute, length = 100_us;
  constexpr std::size_t seeds = 2000;
  for (const std::size_t ranks : {1, 2, 8}) {
    Scenario scenario =
        scenario_with({.seeds = seeds, .pause_every = every, .pause_length = length});
    const StepTimes times = step_times(scenario, model.workload(), free_star(ranks), cost(), 1);
    double hit = 0;
    for (const Time step : times.steps) {
      ASSERT_TRUE(step == compute || step == compute + length);
      hit += step > compute;
    }
    const double share = 1 - std::pow(0.75, static_cast<double>(ranks));
    const double deviation = std::sqrt(share * (1 - share) / seeds);
    EXPECT_NEAR(hit / seeds, share, 4 * deviation) << "1 - (1 - T/P)^" << ranks;
  }
}

struct Sampled {
  double mean = 0, deviation_of_mean = 0;
};
Sampled sampled(const StepTimes& times) {
  const auto n = static_cast<double>(times.steps.size());
  double sum = 0, squares = 0;
  for (const Time step : times.steps) sum += static_cast<double>(step.ps()) / n;
  for (const Time step : times.steps)
    squares += std::pow(static_cast<double>(step.ps()) - sum, 2) / (n - 1);
  return {sum, std::sqrt(squares / n)};
}

// The slowest of n exponential times: T (1 + 1/2 + … + 1/n) (Rényi 1953).
TEST(Imperfections, ExpectedMaximumOfExponentialRanks) {
  for (const std::size_t ranks : {1, 2, 4, 16}) {
    Scenario scenario =
        scenario_with({.seeds = 3000, .rank_jitter = 1, .distribution = Jitter::gamma});
    const Sampled found =
        sampled(step_times(scenario, model.workload(), free_star(ranks), cost(), 1));
    double harmonic = 0;
    for (std::size_t k = 1; k <= ranks; ++k) harmonic += 1 / static_cast<double>(k);
    EXPECT_NEAR(found.mean, harmonic * static_cast<double>(compute.ps()),
                4 * found.deviation_of_mean)
        << "H_" << ranks << " = " << harmonic;
  }
}

// Many kernels with a little jitter each: their sum is normal, and the largest of two such sums is
// σ/√π above the mean, of four 1.0294 σ (normal order statistics).
TEST(Imperfections, ExpectedMaximumOfManyJitteredKernels) {
  const double variation = 0.1;
  // Eighteen kernels: twelve of 30 us, six of 20.
  const double sigma = variation * std::sqrt(12 * std::pow(static_cast<double>(product.ps()), 2) +
                                             6 * std::pow(static_cast<double>(weights.ps()), 2));
  for (const auto& [ranks, above] :
       {std::pair<std::size_t, double>{1, 0}, {2, 0.5642}, {4, 1.0294}}) {
    for (const Jitter distribution : {Jitter::lognormal, Jitter::gamma}) {
      const Scenario scenario =
          scenario_with({.seeds = 2000, .kernel_jitter = variation, .distribution = distribution});
      const Sampled found =
          sampled(step_times(scenario, model.workload(), free_star(ranks), cost(), 1));
      // Sums of 18 are not quite normal: their skew moves the maximum by about 2 % of σ.
      EXPECT_NEAR(found.mean, static_cast<double>(compute.ps()) + above * sigma,
                  4 * found.deviation_of_mean + 0.03 * sigma)
          << "the largest of " << ranks;
    }
  }
}

// An exchange takes 1 + m of its time on average, never less than planned.
TEST(Imperfections, NetworkJitterOnlyTakes) {
  const Topology machine = calm_star(4, {5.0_GBps, 1_us});
  const Time calm = run(scenario_with({}), machine).step;
  const double exchanged = static_cast<double>((calm - compute).ps());
  const Scenario scenario = scenario_with({.seeds = 2000, .network_jitter = 0.5});
  const StepTimes times = step_times(scenario, model.workload(), machine, cost(), 1);
  const Sampled found = sampled(times);
  EXPECT_GE(times.quantile(0), calm);
  EXPECT_NEAR(found.mean, static_cast<double>(compute.ps()) + 1.5 * exchanged,
              4 * found.deviation_of_mean);
}

TEST(Imperfections, SameSeedSameBytesOnAnyNumberOfThreads) {
  Scenario scenario = scenario_with({.seed = 7,
                                     .seeds = 40,
                                     .kernel_jitter = 0.2,
                                     .network_jitter = 0.1,
                                     .pause_every = 700_us,
                                     .pause_length = 30_us});
  const Topology machine = calm_star(4, {5.0_GBps, 1_us});
  const StepTimes one = step_times(scenario, model.workload(), machine, cost(), 1);
  for (const std::size_t threads : {2, 3, 64})
    EXPECT_EQ(step_times(scenario, model.workload(), machine, cost(), threads), one);
  EXPECT_EQ(run(scenario, machine).step, one.steps.front()) << "the first seed is the scenario's";
  scenario.imperfection.seed = 8;
  EXPECT_EQ(run(scenario, machine).step, one.steps[1]) << "and the next one the second's";
  EXPECT_NE(one.steps[0], one.steps[1]);
}

TEST(Imperfections, QuantilesAreByNearestRank) {
  StepTimes times;
  for (const std::int64_t t : {40, 10, 30, 20, 50}) times.steps.push_back(Time::picoseconds(t));
  EXPECT_EQ(times.quantile(0).ps(), 10);
  EXPECT_EQ(times.quantile(0.5).ps(), 30);
  EXPECT_EQ(times.quantile(0.9).ps(), 50);
  EXPECT_EQ(times.quantile(0.2).ps(), 10);
  EXPECT_EQ(times.quantile(1).ps(), 50);
  EXPECT_EQ(times.mean().ps(), 30);
}

// Mean 1 and the stated coefficient of variation, small and large.
TEST(Draws, HaveTheStatedMeanAndVariation) {
  constexpr std::size_t n = 20'000;
  for (const Jitter distribution : {Jitter::lognormal, Jitter::gamma})
    for (const double variation : {0.01, 0.3, 1.0}) {
      double sum = 0, squares = 0;
      for (std::uint64_t i = 0; i < n; ++i) {
        const double x = jitter_draw(distribution, variation, {3, DrawFor::kernel, i % 7, i});
        EXPECT_GT(x, 0);
        sum += x / n;
        squares += x * x / n;
      }
      EXPECT_NEAR(sum, 1, 5 * variation / std::sqrt(double{n}));
      EXPECT_NEAR(std::sqrt(squares - sum * sum), variation, 0.12 * variation);
    }
}

}  // namespace
}  // namespace rehearse::imperfections_test
