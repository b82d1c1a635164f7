// Data-parallel steps against recurrences written here: what overlaps, what cannot, what travels.
#include <gtest/gtest.h>

#include <numeric>

#include "sim/engine/cost_model.hpp"
#include "strategies/collectives/decide.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::data_parallel_step_test {
namespace {

constexpr std::size_t ranks = 4;
constexpr Time product = 30_us, weights = 20_us;  // of a layer; a backward pass is one of each
constexpr std::int64_t layers = 6;

const EqualLayers model{.count = layers, .width = 256};

Topology machine_of(double gigabytes_per_second) {
  return calm_star(ranks, {BytesPerSecond{gigabytes_per_second * 1e9}, 1_us});
}

Scenario with_ring(std::size_t microbatches) {
  Scenario scenario = model.scenario(microbatches);
  scenario.collectives = {.all_reduce = "ring", .all_gather = "ring", .reduce_scatter = "ring"};
  scenario.parallelism.bucket_size = model.weights();
  scenario.parallelism.first_bucket_size = model.weights();
  return scenario;
}

StepPredictor::Answer run(const Scenario& scenario, const Topology& machine) {
  const ProductCost cost(product, weights, model.samples);
  return StepPredictor(machine, cost).predict(scenario, model.workload(), {});
}

std::vector<Bytes> reduced(const StepProgram& step) {
  std::vector<Bytes> sizes;
  for (const OpTag& tag : step.tags)
    if (tag.communicates && tag.phase == Phase::gradients) sizes.push_back(tag.bytes);
  return sizes;
}

Time all_reduce(const Topology& machine, Bytes size) {
  return time_of("ring", CollectiveKind::all_reduce, machine, size);
}

// The free layer's weights are one more small bucket at the end of the backward pass.
constexpr Bytes small_bucket{2 * 256};

TEST(DataParallelStep, WithoutOverlapTimesAddUp) {
  for (const double rate : {0.5, 5.0, 50.0})
    for (const std::size_t microbatches : {1, 3}) {
      const Topology machine = machine_of(rate);
      const Prediction told = run(with_ring(microbatches), machine).prediction;
      const Time compute =
          static_cast<std::int64_t>(microbatches) * layers * (2 * product + weights);
      const Time exchanged =
          layers * all_reduce(machine, model.weights()) + all_reduce(machine, small_bucket);
      EXPECT_EQ(told.step, compute + exchanged);
      ASSERT_EQ(told.roles.size(), 1u) << "all ranks are alike";
      const TimeUse& use = told.roles[0].time;
      EXPECT_EQ(use.compute, compute);
      EXPECT_EQ(use.exposed[static_cast<std::size_t>(Dimension::data)], exchanged);
      EXPECT_EQ(use.bubble, Time{});
    }
}

// Li et al. 2020. A layer's bucket is ready when its backward pass is done, and they go one by one.
TEST(DataParallelStep, WithOverlapTheLongerOneCounts) {
  const Time before = layers * product, backward = product + weights;
  for (const double rate : {0.2, 0.5, 2.0, 3.7, 8.0, 20.0, 200.0}) {
    const Topology machine = machine_of(rate);
    Scenario scenario = with_ring(1);
    scenario.parallelism.overlap_grad_reduce = true;
    const Prediction told = run(scenario, machine).prediction;
    const Time each = all_reduce(machine, model.weights()),
               last = all_reduce(machine, small_bucket);
    // Compute first, then what of the last layers' buckets is left; or the first layer's backward
    // pass, and communication from then on.
    const Time expected = std::max(before + layers * backward + each + last,
                                   before + backward + layers * each + last);
    EXPECT_EQ(told.step, expected) << "max(backward, communication) + what cannot overlap, at "
                                   << rate << " GB/s: " << each.ps() << " ps a bucket";
  }
}

// The same by a recurrence over any buckets: each begins when it is full and the one before is
// done.
Time overlapped(std::size_t microbatches, Bytes first, Bytes size, const Topology& machine,
                std::vector<Bytes>& sizes) {
  Time now = static_cast<std::int64_t>(microbatches) * layers * product +
             (static_cast<std::int64_t>(microbatches) - 1) * layers * (product + weights);
  Time exchange;
  Bytes filled, capacity = first;
  const auto send = [&] {
    exchange = std::max(exchange, now) + all_reduce(machine, filled);
    sizes.push_back(filled);
    filled = Bytes{0};
    capacity = size;
  };
  for (std::int64_t layer = layers; layer >= 0; --layer) {
    if (layer > 0) now += product + weights;
    for (Bytes left = layer > 0 ? model.weights() : small_bucket; left > Bytes{0};) {
      const Bytes part = std::min(left, capacity - filled);
      filled += part;
      left -= part;
      if (filled == capacity) send();
    }
  }
  if (filled > Bytes{0}) send();
  return std::max(now, exchange);
}

TEST(DataParallelStep, AnyBucketsByTheRecurrence) {
  for (const double rate : {0.5, 3.0, 9.0, 40.0})
    for (const Bytes first : {1'000_B, 100'000_B, 131'072_B, 400'000_B})
      for (const Bytes size : {50'000_B, 131'072_B, 300'000_B, 10'000'000_B})
        for (const std::size_t microbatches : {1, 2}) {
          const Topology machine = machine_of(rate);
          Scenario scenario = with_ring(microbatches);
          scenario.parallelism.overlap_grad_reduce = true;
          scenario.parallelism.first_bucket_size = first;
          scenario.parallelism.bucket_size = size;
          const StepPredictor::Answer answer = run(scenario, machine);
          std::vector<Bytes> sizes;
          const Time expected =
              overlapped(microbatches, std::min(first, size), size, machine, sizes);
          EXPECT_EQ(answer.prediction.step, expected)
              << rate << " GB/s, buckets of " << first.count() << " and " << size.count() << " B";
          EXPECT_EQ(reduced(answer.step), sizes);
        }
}

TEST(DataParallelStep, AccumulationReducesOnce) {
  const Topology machine = machine_of(5);
  for (const bool overlap : {false, true})
    for (const std::size_t microbatches : {1, 2, 7}) {
      Scenario scenario = with_ring(microbatches);
      scenario.parallelism.overlap_grad_reduce = overlap;
      const std::vector<Bytes> sizes = reduced(run(scenario, machine).step);
      EXPECT_EQ(sizes.size(), layers + 1u);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), Bytes{}).count(),
                2 * model.parameters());
    }
}

TEST(DataParallelStep, BroadcastComesFirstWhenAskedFor) {
  const Topology machine = machine_of(5);
  Scenario scenario = with_ring(1);
  const Time without = run(scenario, machine).prediction.step;
  scenario.parallelism.broadcast_parameters = true;
  scenario.collectives.broadcast = "ring";
  EXPECT_EQ(run(scenario, machine).prediction.step - without,
            time_of("ring", CollectiveKind::broadcast, machine, Bytes{2 * model.parameters()}));
}

// Patarasu and Yuan 2009: every link carries 2(n-1)/n of the data.
TEST(DataParallelStep, RingVolume) {
  for (const std::size_t n : {2, 4, 8}) {
    const Topology machine = calm_star(n, {5.0_GBps, 1_us});
    const ProductCost cost(product, weights, model.samples);
    const StepProgram whole =
        StepPredictor(machine, cost).whole_program(with_ring(2), model.workload());
    Routing routing(machine);
    const Program expanded = expand_collectives(whole.program, routing, {.algorithm = "ring"});
    const Timeline timeline = FastSimulator(routing, cost).run(expanded);
    const auto most = std::max_element(timeline.link_bytes.begin(), timeline.link_bytes.end());
    const auto parts = static_cast<std::int64_t>(n);
    EXPECT_EQ(most->count(), 2 * (parts - 1) * 2 * model.parameters() / parts)
        << "2 (n-1)/n S, S = 2 bytes of each parameter, n = " << n;
  }
}

// Strong scaling cuts a batch over K replicas, weak scaling gives each its own.
TEST(DataParallelStep, StrongAndWeakScaling) {
  const ProductCost cost(product, weights, model.samples);
  const auto predict = [&](std::size_t replicas, Scaling scaling) {
    Scenario scenario = model.scenario(8);
    scenario.training.scaling = scaling;
    const Topology machine = free_star(replicas);
    return StepPredictor(machine, cost).predict(scenario, model.workload(), {}).prediction;
  };
  const Prediction alone = predict(1, Scaling::strong);
  for (const std::size_t k : {1, 2, 4, 8}) {
    const auto times = static_cast<std::int64_t>(k);
    const Prediction strong = predict(k, Scaling::strong), weak = predict(k, Scaling::weak);
    EXPECT_EQ(times * strong.step, alone.step) << "B/K on each of " << k;
    EXPECT_EQ(strong.samples, alone.samples);
    EXPECT_EQ(strong.microbatches * k, alone.microbatches);
    EXPECT_EQ(weak.step, alone.step) << "K B in all";
    EXPECT_EQ(weak.samples, static_cast<double>(k) * alone.samples);
  }
}

}  // namespace
}  // namespace rehearse::data_parallel_step_test
