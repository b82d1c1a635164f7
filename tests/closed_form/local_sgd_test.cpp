// Local SGD against its formulas: communication is 1/H of synchronous, and steps add up.
#include "strategies/methods/local_sgd.hpp"
#include "strategies/predict/local_average.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::local_sgd_test {
namespace {

constexpr std::size_t ranks = 4;
constexpr Time product = 30_us, weights = 20_us;
constexpr std::int64_t layers = 6;
const EqualLayers model{.count = layers, .width = 256};
constexpr Time compute = layers * (2 * product + weights);  // of a step; the optimizer is free

const Topology& machine() {
  static const Topology star = calm_star(ranks, {1.0_GBps, 1_us});
  return star;
}

Scenario with(const LocalSgd& how) {
  Scenario scenario = model.scenario(1);
  scenario.collectives = {.all_reduce = "ring", .all_gather = "ring", .reduce_scatter = "ring"};
  scenario.parallelism.bucket_size = scenario.parallelism.first_bucket_size = model.weights();
  scenario.local_sgd = how;
  return scenario;
}

StepPredictor::Answer run(const Scenario& scenario, bool fold = true) {
  const ProductCost cost(product, weights, model.samples);
  return StepPredictor(machine(), cost).predict(scenario, model.workload(), {.fold = fold});
}

// All layers, and the free one's few weights.
Time average() {
  return layers * time_of("ring", CollectiveKind::all_reduce, machine(), model.weights()) +
         time_of("ring", CollectiveKind::all_reduce, machine(), Bytes{2 * 256});
}

std::size_t count(const std::vector<LocalStep>& steps, LocalStep kind) {
  return static_cast<std::size_t>(std::count(steps.begin(), steps.end(), kind));
}

TEST(LocalSgd, AnIntervalIsHStepsAndOneAverage) {
  for (const std::size_t h : {1, 2, 5, 16}) {
    const StepPredictor::Answer answer = run(with({.interval = h}));
    const auto steps = static_cast<std::int64_t>(h);
    EXPECT_EQ(answer.timeline.makespan, steps * compute + average());
    EXPECT_EQ(answer.prediction.step, Time::picoseconds(answer.timeline.makespan.ps() / steps));
    const std::vector<Time> times = local_step_times(answer.step, answer.timeline);
    ASSERT_EQ(times.size(), h);
    for (std::size_t k = 0; k + 1 < h; ++k) EXPECT_EQ(times[k], compute);
    EXPECT_EQ(times.back(), compute + average());
  }
}

// Parameters and gradients have two bytes each here, so an average is what a reduction is.
TEST(LocalSgd, CommunicatesOneInHOfSynchronous) {
  const Prediction synchronous = run(with({})).prediction;
  const auto dp = static_cast<std::size_t>(Dimension::data);
  const double all = synchronous.mean.exposed[dp].seconds().count();
  EXPECT_EQ(synchronous.mean.exposed[dp], average());
  for (const std::size_t h : {1, 2, 4, 8, 100}) {
    const Prediction local = run(with({.interval = h})).prediction;
    EXPECT_NEAR(local.mean.exposed[dp].seconds().count(), all / static_cast<double>(h), 1e-12);
    Time sum = local.mean.compute + local.mean.bubble;
    for (const Time part : local.mean.exposed) sum += part;
    EXPECT_LE(std::abs((sum - local.step).ps()), 8);
  }
}

TEST(LocalSgd, AfterSynchronousStepsComeLocalOnes) {
  const Scenario scenario =
      with({.interval = 4, .kind = LocalInterval::post_local, .synchronous_steps = 3, .steps = 11});
  const StepPredictor::Answer answer = run(scenario);
  EXPECT_EQ(answer.timeline.makespan, 11 * compute + (3 + 2) * average());
  const std::vector<LocalStep> schedule = local_schedule(scenario.local_sgd);
  EXPECT_EQ(count(schedule, LocalStep::synchronous), 3u);
  EXPECT_EQ(count(schedule, LocalStep::averaging), 2u);
  EXPECT_EQ(schedule[2], LocalStep::synchronous);
  EXPECT_EQ(schedule[6], LocalStep::averaging);
}

// 16, then ceil(16 sqrt(1 / (1 + 16/100))) = 15, then after 31 ceil(16 sqrt(100/131)) = 14 …
TEST(LocalSgd, AdaptiveIntervalsShrinkWithTheSquareRootOfTheLoss) {
  const LocalSgd how{
      .interval = 16, .kind = LocalInterval::adaptive, .loss_half_steps = 100, .steps = 2000};
  const std::vector<LocalStep> schedule = local_schedule(how);
  std::vector<std::size_t> intervals;
  std::size_t begin = 0;
  for (std::size_t k = 0; k < schedule.size(); ++k)
    if (schedule[k] == LocalStep::averaging) {
      intervals.push_back(k + 1 - begin);
      EXPECT_EQ(intervals.back(), static_cast<std::size_t>(std::ceil(
                                      16 * std::sqrt(100.0 / (100 + static_cast<double>(begin))))));
      begin = k + 1;
    }
  ASSERT_GT(intervals.size(), 50u);
  EXPECT_EQ(intervals[0], 16u);
  EXPECT_EQ(intervals[1], 15u);
  EXPECT_EQ(intervals[2], 14u);
  EXPECT_TRUE(std::is_sorted(intervals.rbegin(), intervals.rend()));
  EXPECT_EQ(intervals.back(), 4u);  // sqrt(100 / 2000) of 16
}

TEST(LocalSgd, FoldedEqualsUnfoldedAndQuickEqualsWhole) {
  const ProductCost cost(product, weights, model.samples);
  for (const LocalSgd& how :
       {LocalSgd{.interval = 3, .steps = 7},
        LocalSgd{.interval = 2, .kind = LocalInterval::post_local, .synchronous_steps = 2}})
    for (const bool overlap : {false, true})
      for (const std::size_t pipeline : {1, 2}) {
        Scenario scenario = with(how);
        scenario.parallelism.overlap_grad_reduce = overlap;
        scenario.parallelism.pipeline = pipeline;
        if (pipeline > 1) scenario.parallelism.layers_per_stage = model.per_stage(pipeline);
        const Time folded = run(scenario).timeline.makespan;
        EXPECT_EQ(folded, run(scenario, false).timeline.makespan);
        const Prediction quick = StepPredictor(machine(), cost).quick(scenario, model.workload());
        EXPECT_EQ(quick.step, run(scenario).prediction.step);
      }
}

}  // namespace
}  // namespace rehearse::local_sgd_test
