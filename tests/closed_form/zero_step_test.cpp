// ZeRO against the formulas of its paper: what each rank holds, and when parameters arrive.
#include <gtest/gtest.h>

#include <algorithm>

#include "strategies/layers/optimizer.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::zero_step_test {
namespace {

constexpr std::size_t ranks = 4;
const EqualLayers model{.count = 4, .width = 256};

MemoryUse at_rest(const Scenario& scenario, std::size_t gpus = ranks) {
  const Topology machine = free_star(gpus);
  const ProductCost cost(1_us, 1_us, model.samples);
  const auto answer = StepPredictor(machine, cost).predict(scenario, model.workload(), {});
  EXPECT_EQ(answer.step.roles.size(), 1u);
  return answer.step.roles.front().at_rest;
}

Bytes of(const MemoryUse& use, MemoryKind kind) { return use[static_cast<std::size_t>(kind)]; }

void expect_memory(const MemoryUse& use, std::int64_t parameters, std::int64_t gradients,
                   std::int64_t state) {
  EXPECT_EQ(of(use, MemoryKind::parameters).count(), parameters);
  EXPECT_EQ(of(use, MemoryKind::gradients).count(), gradients);
  EXPECT_EQ(of(use, MemoryKind::optimizer).count(), state);
}

// Rajbhandari et al. 2020, figure 1, K = 12: 16 P, then 4 P + 12 P/N, 2 P + 14 P/N and 16 P/N.
TEST(ZeroMemory, IsThePapers) {
  const std::int64_t p = model.parameters(), n = ranks;
  ASSERT_EQ(p % n, 0);
  Scenario scenario = model.scenario(1);
  expect_memory(at_rest(scenario), 2 * p, 2 * p, 12 * p);
  scenario.parallelism.zero_stage = 1;
  expect_memory(at_rest(scenario), 2 * p, 2 * p, 12 * p / n);
  scenario.parallelism.zero_stage = 2;
  expect_memory(at_rest(scenario), 2 * p, 2 * p / n, 12 * p / n);
  scenario.parallelism.zero_stage = 3;
  expect_memory(at_rest(scenario), 2 * p / n, 2 * p / n, 12 * p / n);
  scenario.training.gradients_in_fp32 = true;
  expect_memory(at_rest(scenario), 2 * p / n, 4 * p / n, 12 * p / n);
  scenario.training = model.scenario(1).training;
  scenario.training.precision = Precision::fp32;
  expect_memory(at_rest(scenario), 4 * p / n, 4 * p / n, 8 * p / n);
}

// With half of the ranks to a copy, each holds a second part of it, not a fourth.
TEST(ZeroMemory, HybridShardsHoldMore) {
  const std::int64_t p = model.parameters();
  Scenario scenario = model.scenario(1);
  scenario.parallelism.zero_stage = 3;
  scenario.parallelism.zero_shard_ranks = 2;
  expect_memory(at_rest(scenario), 2 * p / 2, 2 * p / 2, 12 * p / 2);
  scenario.parallelism.zero_shard_ranks = 1;
  expect_memory(at_rest(scenario), 2 * p, 2 * p, 12 * p);
}

/// The most of a kind that a role holds at once.
Bytes most(const StepPredictor::Answer& answer, MemoryKind kind) {
  const Role& role = answer.step.roles.front();
  std::vector<std::pair<Time, Bytes>> changes;
  for (const MemoryChange& change : role.changes)
    if (change.kind == kind) {
      const Timeline::Span& span = answer.timeline.spans[index(change.op)];
      changes.emplace_back(change.at_end ? span.end : span.begin, change.bytes);
    }
  std::sort(changes.begin(), changes.end());  // what goes at a moment goes first
  Bytes now = of(role.at_rest, kind), peak = now;
  for (const auto& [time, bytes] : changes) peak = std::max(peak, now += bytes);
  EXPECT_EQ(now, of(role.at_rest, kind)) << "what comes goes";
  return peak;
}

// Beside its part a rank holds the whole gradients of a layer from its backward pass until they are
// scattered: one layer's when that is waited for, and a few when it lags behind.
TEST(ZeroMemory, WholeGradientsUntilTheyAreScattered) {
  const Topology fast = free_star(ranks), slow = calm_star(ranks, {0.5_GBps, Time{}});
  const ProductCost cost(10_us, 10_us, model.samples);
  const auto gradients = [&](const Scenario& scenario, const Topology& machine) {
    return most(StepPredictor(machine, cost).predict(scenario, model.workload(), {}),
                MemoryKind::gradients)
        .count();
  };
  const std::int64_t p = 2 * model.parameters(), layer = model.weights().count();
  const auto layers = static_cast<std::int64_t>(model.count);
  for (const std::size_t microbatches : {1, 3})
    for (const std::size_t stage : {0, 1, 2, 3}) {
      Scenario scenario = model.scenario(microbatches);
      scenario.parallelism.zero_stage = stage;
      scenario.parallelism.bucket_size = scenario.parallelism.first_bucket_size = model.weights();
      const std::int64_t expected = stage < 2 ? p : p / std::int64_t{ranks} + layer;
      EXPECT_EQ(gradients(scenario, fast), expected) << "stage " << stage;
      if (stage < 2) continue;
      scenario.parallelism.overlap_grad_reduce = true;
      EXPECT_GT(gradients(scenario, slow), expected + layer) << "the network is behind";
      // Filled when the last layer's backward pass is done: all of them are there.
      scenario.parallelism.bucket_size = scenario.parallelism.first_bucket_size = 1_GiB;
      const std::int64_t whole = p / std::int64_t{ranks} + layers * layer + 2 * model.width;
      if (stage == 2 && microbatches == 1) {
        EXPECT_EQ(gradients(scenario, slow), whole);
      }
    }
}

// The initial broadcast comes before everything: gathers, too. Exchanges as flows: transfer by
// transfer the first ranks send the next layer on while the last still wait for this one.
TEST(ZeroBroadcast, ComesFirst) {
  const Topology machine = calm_star(ranks, {10.0_GBps, 1_us});
  const ProductCost cost(10_us, 10_us, model.samples);
  for (const std::size_t stage : {0, 1, 2, 3})
    for (const bool overlap : {false, true}) {
      Scenario scenario = model.scenario(1);
      scenario.collectives = {.all_reduce = "ring",
                              .all_gather = "ring",
                              .reduce_scatter = "ring",
                              .broadcast = "ring"};
      scenario.parallelism.zero_stage = stage;
      scenario.parallelism.overlap_param_gather = overlap && stage > 0;
      const auto step = [&](bool broadcast) {
        scenario.parallelism.broadcast_parameters = broadcast;
        StepPredictor predictor(machine, cost, Crowds::by_flows);
        return predictor.predict(scenario, model.workload(), {}).prediction;
      };
      const auto sent = [&](Bytes size) {
        return time_of("ring", CollectiveKind::broadcast, machine, size);
      };
      // Layer by layer where each rank keeps its part only.
      const auto layers = static_cast<std::int64_t>(model.count);
      const Time expected = stage < 3
                                ? sent(Bytes{2 * model.parameters()})
                                : sent(Bytes{2 * model.width}) + layers * sent(model.weights());
      EXPECT_EQ(step(true).step, step(false).step + expected) << "stage " << stage;
      EXPECT_EQ(step(true).roles[0].peak_bytes, step(false).roles[0].peak_bytes);
    }
}

TEST(OptimizerMemory, StateOfEach) {
  struct Row {
    OptimizerKind kind;
    std::int64_t mixed, full;  // bytes of state, with a master copy in fp32 and without
  };
  for (const Row& row : {Row{OptimizerKind::sgd, 4, 0}, Row{OptimizerKind::momentum, 8, 4},
                         Row{OptimizerKind::lars, 8, 4}, Row{OptimizerKind::adam, 12, 8},
                         Row{OptimizerKind::lamb, 12, 8}}) {
    const std::int64_t p = model.parameters();
    Scenario scenario = model.scenario(1);
    scenario.training.optimizer = row.kind;
    for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::fp8}) {
      scenario.training.precision = precision;
      expect_memory(at_rest(scenario), 2 * p, 2 * p, row.mixed * p);
    }
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      scenario.training.precision = precision;
      expect_memory(at_rest(scenario), 4 * p, 4 * p, row.full * p);
    }
  }
}

// Bytes of each kernel, for one parameter: what is read, then what is written.
TEST(OptimizerTraffic, OfEachKernel) {
  const auto traffic = [](OptimizerKind kind, Precision precision) {
    std::vector<std::int64_t> bytes;
    for (const Piece& piece : optimizer_pieces({.precision = precision, .optimizer = kind}, 1000))
      bytes.push_back(std::get<Compute>(piece.work).traffic.count() / 1000);
    return bytes;
  };
  using enum OptimizerKind;
  using Each = std::vector<std::int64_t>;
  EXPECT_EQ(traffic(sgd, Precision::fp32), (Each{4 + 4 + 4})) << "g w; w";
  EXPECT_EQ(traffic(momentum, Precision::fp32), (Each{4 + 4 + 4 + 4 + 4})) << "g w m; w m";
  EXPECT_EQ(traffic(adam, Precision::fp32), (Each{4 + 12 + 12})) << "g w m v; w m v";
  EXPECT_EQ(traffic(lars, Precision::fp32), (Each{4 + 4, 20})) << "g w; as momentum";
  EXPECT_EQ(traffic(lamb, Precision::fp32), (Each{4 + 12 + 8 + 4, 4 + 4, 4 + 4 + 4}))
      << "g w m v; m v u - u w - u w; w";
  EXPECT_EQ(traffic(sgd, Precision::bf16), (Each{2 + 4 + 4 + 2})) << "g master; master w";
  EXPECT_EQ(traffic(adam, Precision::bf16), (Each{2 + 12 + 12 + 2}));
  EXPECT_EQ(traffic(lars, Precision::bf16), (Each{2 + 4, 2 + 8 + 8 + 2}));
  EXPECT_EQ(traffic(lamb, Precision::bf16), (Each{2 + 12 + 8 + 4, 4 + 4, 4 + 4 + 4 + 2}));
}

// Each rank updates what it holds of the state.
TEST(OptimizerTraffic, ZeroUpdatesItsOwnPart) {
  const Topology machine = free_star(ranks);
  const ProductCost cost(1_us, 1_us, model.samples);
  for (const std::size_t stage : {0, 1, 2, 3}) {
    Scenario scenario = model.scenario(1);
    scenario.parallelism.zero_stage = stage;
    const StepProgram step =
        StepPredictor(machine, cost).predict(scenario, model.workload(), {}).step;
    Bytes traffic;
    for (std::size_t i = 0; i < step.program.size(); ++i)
      if (step.tags[i].phase == Phase::optimizer)
        traffic += step.program.compute(step.program.ops()[i]).traffic;
    EXPECT_EQ(traffic.count(), 28 * model.parameters() / (stage == 0 ? 1 : std::int64_t{ranks}));
  }
}

class ZeroThree : public testing::Test {
 protected:
  struct Times {
    Time forward = 30_us, weights = 20_us;
  };
  static Scenario scenario(std::size_t microbatches, std::size_t prefetch) {
    Scenario scenario = model.scenario(microbatches);
    scenario.parallelism.zero_stage = 3;
    scenario.parallelism.prefetch_layers = prefetch;
    scenario.collectives = {.all_reduce = "ring", .all_gather = "ring", .reduce_scatter = "ring"};
    return scenario;
  }
  static Time step(const Scenario& scenario, const Topology& machine) {
    const ProductCost cost(Times{}.forward, Times{}.weights, model.samples);
    return StepPredictor(machine, cost).predict(scenario, model.workload(), {}).prediction.step;
  }
  static Bytes bytes_of(std::size_t layer) {
    return layer == 0 ? Bytes{2 * model.width} : model.weights();
  }

  /// Layers wait for their own gather; gathers go one after another, `prefetch` ahead of the layer
  /// in use, and begin when the kernels before that layer are done. Gradients are waited for.
  static Time recurrence(std::size_t microbatches, std::size_t prefetch, const Topology& machine) {
    const std::size_t count = model.count + 1;
    const auto last = static_cast<std::ptrdiff_t>(count) - 1;
    std::vector<Time> arrival(count, Time::never());  // never: it is not there
    Time kernels, lane;
    const auto use = [&](std::ptrdiff_t layer, std::ptrdiff_t step) {
      for (std::ptrdiff_t ahead = 0; ahead <= static_cast<std::ptrdiff_t>(prefetch); ++ahead) {
        const std::ptrdiff_t next = layer + step * ahead;
        if (next < 0 || next > last) break;
        Time& there = arrival[static_cast<std::size_t>(next)];
        if (there != Time::never()) continue;
        there = lane =
            std::max(lane, kernels) + time_of("ring", CollectiveKind::all_gather, machine,
                                              bytes_of(static_cast<std::size_t>(next)));
      }
      kernels = std::max(kernels, arrival[static_cast<std::size_t>(layer)]);
    };
    for (std::size_t m = 0; m < microbatches; ++m) {
      for (std::ptrdiff_t l = 0; l <= last; ++l) {
        use(l, +1);
        if (l > 0) kernels += Times{}.forward;
        if (l < last) arrival[static_cast<std::size_t>(l)] = Time::never();
      }
      for (std::ptrdiff_t l = last; l >= 0; --l) {
        use(l, -1);
        if (l > 0) kernels += Times{}.forward + Times{}.weights;
        arrival[static_cast<std::size_t>(l)] = Time::never();
        kernels += time_of("ring", CollectiveKind::reduce_scatter, machine,
                           bytes_of(static_cast<std::size_t>(l)));
      }
    }
    return kernels;
  }
};

TEST_F(ZeroThree, LayersWaitForTheirGathers) {
  for (const double rate : {2.0, 6.0, 10.0, 50.0, 500.0})
    for (const std::size_t prefetch : {0, 1, 2, 9})
      for (const std::size_t microbatches : {1, 3}) {
        // Two layers ahead the gathers of a slow network run into the gradients, and share links.
        if (prefetch > 1 && rate < 5) continue;
        const Topology machine = calm_star(ranks, {BytesPerSecond{rate * 1e9}, Time{}});
        EXPECT_EQ(step(scenario(microbatches, prefetch), machine),
                  recurrence(microbatches, prefetch, machine))
            << rate << " GB/s, " << prefetch << " ahead, " << microbatches << " micro-batches";
      }
}

// While a gather takes no longer than a layer, one layer ahead hides all gathers but the first.
TEST_F(ZeroThree, PrefetchHidesAllButTheFirst) {
  const Topology machine = calm_star(ranks, {10.0_GBps, Time{}});
  const auto gather = [&](std::size_t layer) {
    return time_of("ring", CollectiveKind::all_gather, machine, bytes_of(layer));
  };
  const auto reduce = [&](std::size_t layer) {
    return time_of("ring", CollectiveKind::reduce_scatter, machine, bytes_of(layer));
  };
  ASSERT_LT(gather(1), Times{}.forward);
  ASSERT_LT(gather(1) + reduce(1), Times{}.forward + Times{}.weights);
  const auto layers = static_cast<std::int64_t>(model.count);
  const Time compute = layers * (2 * Times{}.forward + Times{}.weights);
  const Time gradients = layers * reduce(1) + reduce(0);
  // The free layer hides nothing, so the one after it is waited for too.
  EXPECT_EQ(step(scenario(1, 1), machine), gather(0) + gather(1) + compute + gradients);
  // Without, every layer waits, but for the one that both passes have in common.
  EXPECT_EQ(step(scenario(1, 0), machine),
            2 * gather(0) + (2 * layers - 1) * gather(1) + compute + gradients);
  // Gradients beside the backward pass: only those of the first layers are left at the end.
  Scenario overlapped = scenario(1, 1);
  overlapped.parallelism.overlap_grad_reduce = true;
  EXPECT_EQ(step(overlapped, machine), gather(0) + gather(1) + compute + reduce(1) + reduce(0));
}

}  // namespace
}  // namespace rehearse::zero_step_test
