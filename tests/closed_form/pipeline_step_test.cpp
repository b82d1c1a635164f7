// Whole steps of pipelines against the papers' formulas and against a max-plus evaluation that
// knows nothing of kernels, streams and messages: to the picosecond.
#include <gtest/gtest.h>

#include "strategies/schedules/schedules.hpp"
#include "tests/support/max_plus.hpp"
#include "tests/support/training.hpp"

namespace rehearse::pipeline_step_test {
namespace {

struct Shape {
  std::string_view schedule;
  std::size_t ranks = 1, microbatches = 1, chunks = 1;
  StageTimes times;  // of one stage, in microseconds; the gradient of inputs takes a forward's time
};

StepPredictor::Answer run(const Shape& shape) {
  const std::size_t stages = shape.ranks * shape.chunks;
  const EqualLayers model{.count = stages};
  Scenario scenario = model.scenario(shape.microbatches);
  scenario.parallelism.pipeline = shape.ranks;
  scenario.parallelism.schedule = shape.schedule;
  scenario.parallelism.layers_per_stage = model.per_stage(stages);
  const ScheduleKind& kind = schedule_kind(shape.schedule);
  if (kind.chunks == 0) scenario.parallelism.virtual_pipeline = shape.chunks;
  const Topology machine = free_star(shape.ranks);
  const ProductCost cost(shape.times.forward * 1_us, shape.times.backward_weight * 1_us,
                         model.samples);
  return StepPredictor(machine, cost).predict(scenario, model.workload(), {});
}

Time in_us(std::int64_t us) { return us * 1_us; }

/// Calls check(p, m) over small pipelines.
template <class Check>
void over_pipelines(Check check) {
  for (const std::size_t p : {1, 2, 3, 4, 8})
    for (const std::size_t m : {1, 2, 4, 8, 24}) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      check(p, m);
    }
}

// Every action of every schedule, begin and end.
TEST(PipelineStep, ActionsRunWhenMaxPlusSays) {
  int compared = 0;
  over_pipelines([&](std::size_t p, std::size_t m) {
    for (const ScheduleKind& kind : schedules())
      for (const StageTimes& times : {StageTimes{1, 1, 1}, {3, 3, 2}, {2, 2, 5}}) {
        const bool in_chunks = kind.chunks == 0 && kind.name != "none";
        const Shape shape{kind.name, p, m, in_chunks ? 2 : std::max<std::size_t>(kind.chunks, 1),
                          times};
        if (refusal(kind, {p, m, shape.chunks})) continue;
        const StepPredictor::Answer answer = run(shape);
        const Evaluation expected = evaluate(make_schedule(kind.name, p, m, shape.chunks), times);
        ASSERT_EQ(answer.prediction.step, in_us(expected.makespan)) << kind.name;
        ASSERT_EQ(answer.step.actions.size(), p);
        for (const auto& row : answer.step.actions)
          for (const ActionOps& ops : row) {
            const Timeline::Span span = span_of(ops, answer.timeline);
            const std::int64_t begin = expected.begin.at(ops.action);
            ASSERT_EQ(span.begin, in_us(begin)) << kind.name << " " << to_string(ops.action);
            ASSERT_EQ(span.end, in_us(begin + times.of(ops.action.kind))) << kind.name;
            ++compared;
          }
        for (std::size_t r = 0; r < p; ++r) {
          const TimeUse& use = answer.prediction.roles[r].time;
          EXPECT_EQ(use.compute, in_us(expected.busy[r])) << kind.name;
          EXPECT_EQ(use.bubble, in_us(expected.makespan - expected.busy[r])) << kind.name;
        }
      }
  });
  EXPECT_GT(compared, 10'000);
}

// Huang et al. 2019: of the step (p-1)/(m+p-1) is bubble, for GPipe and for 1F1B.
TEST(PipelineStep, BubbleOfGPipeAndOneFOneB) {
  over_pipelines([](std::size_t p, std::size_t m) {
    for (const std::string_view name : {"GPipe", "1F1B"}) {
      const Prediction told = run({name, p, m, 1, {3, 3, 2}}).prediction;
      const auto waits = static_cast<std::int64_t>(p - 1),
                 slots = static_cast<std::int64_t>(m + p - 1);
      EXPECT_EQ(told.step, in_us(slots * 8)) << name;
      EXPECT_EQ(slots * told.mean.bubble, waits * told.step) << name;
      EXPECT_DOUBLE_EQ(told.bubble_fraction(),
                       static_cast<double>(waits) / static_cast<double>(slots));
    }
  });
}

// Narayanan et al. 2021: with v chunks a rank the same work has a v-th of the bubble.
TEST(PipelineStep, InterleavingDividesTheBubble) {
  over_pipelines([](std::size_t p, std::size_t m) {
    if (m % p != 0) return;
    for (const std::size_t v : {1, 2, 3}) {
      const Prediction told = run({"Interleaved1F1B", p, m, v, {3, 3, 2}}).prediction;
      const auto chunks = static_cast<std::int64_t>(v);
      const Time rank = chunks * in_us(8);  // forward and backward of a whole rank
      EXPECT_EQ(told.mean.compute, static_cast<std::int64_t>(m) * rank);
      EXPECT_EQ(chunks * told.mean.bubble, static_cast<std::int64_t>(p - 1) * rank) << v;
    }
  });
}

// Qi et al. 2023: ZB-H1 has a bubble of (p-1)(F + I - W); ZBV, with F = I = W, none within a rank,
// so that the step is a rank's work and the way down the first p - 1 chunks.
TEST(PipelineStep, ZeroBubbleAsInThePaper) {
  over_pipelines([](std::size_t p, std::size_t m) {
    const auto ranks = static_cast<std::int64_t>(p), rounds = static_cast<std::int64_t>(m);
    if (m >= p) {
      const Prediction h1 = run({"ZBH1", p, m, 1, {3, 3, 2}}).prediction;
      EXPECT_EQ(h1.step, in_us(rounds * 8 + (ranks - 1) * 4));
      EXPECT_EQ(h1.mean.bubble, in_us((ranks - 1) * 4));
    }
    if (m < 2 * p - 1) return;
    const Prediction v = run({"ZBVZeroBubble", p, m, 2, {1, 1, 1}}).prediction;
    EXPECT_EQ(v.step, in_us(2 * rounds * 3 + ranks - 1));
  });
}

TEST(PipelineStep, WithoutAPipelineOneRankWorksAtATime) {
  over_pipelines([](std::size_t p, std::size_t m) {
    const Prediction told = run({"none", p, m, 1, {3, 3, 2}}).prediction;
    const Prediction single = run({"1F1B", 1, m, 1, {3, 3, 2}}).prediction;
    EXPECT_EQ(told.step, static_cast<std::int64_t>(p) * single.step);
  });
}

// Four devices, two micro-batches, a backward pass twice as long as a forward pass:
//
//   us      0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
//   rank 0 │F0│F1│  │  │  │  │  │  │  │  │B0   │  │B1   │
//   rank 1 │  │F0│F1│  │  │  │  │  │B0   │  │B1   │
//   rank 2 │  │  │F0│F1│  │  │B0   │  │B1   │
//   rank 3 │  │  │  │F0│B0   │F1│B1   │
TEST(PipelineStep, FourDevicesTwoMicrobatchesAsDrawn) {
  const StepPredictor::Answer answer = run({"1F1B", 4, 2, 1, {1, 1, 1}});
  struct Drawn {
    ActionKind kind;
    std::uint32_t microbatch;
    std::int64_t begin, end;
  };
  using enum ActionKind;
  const std::vector<std::vector<Drawn>> drawing{
      {{forward, 0, 0, 1}, {forward, 1, 1, 2}, {backward, 0, 10, 12}, {backward, 1, 13, 15}},
      {{forward, 0, 1, 2}, {forward, 1, 2, 3}, {backward, 0, 8, 10}, {backward, 1, 11, 13}},
      {{forward, 0, 2, 3}, {forward, 1, 3, 4}, {backward, 0, 6, 8}, {backward, 1, 9, 11}},
      {{forward, 0, 3, 4}, {backward, 0, 4, 6}, {forward, 1, 6, 7}, {backward, 1, 7, 9}}};
  for (std::uint32_t r = 0; r < 4; ++r)
    for (std::size_t i = 0; i < 4; ++i) {
      const ActionOps& ops = answer.step.actions[r][i];
      const Drawn& drawn = drawing[r][i];
      EXPECT_EQ(ops.action, (Action{r, drawn.kind, drawn.microbatch}));
      const Timeline::Span span = span_of(ops, answer.timeline);
      EXPECT_EQ(span.begin, in_us(drawn.begin)) << to_string(ops.action);
      EXPECT_EQ(span.end, in_us(drawn.end)) << to_string(ops.action);
    }
  EXPECT_EQ(answer.prediction.step, 15_us);
  EXPECT_DOUBLE_EQ(answer.prediction.bubble_fraction(), 3.0 / 5.0) << "(p-1)/(m+p-1)";
}

// A message takes its links' latency and its bytes at their rate; a pipeline waits for each.
TEST(PipelineStep, HandingOverTakesItsTime) {
  const EqualLayers model{.count = 4};
  Scenario scenario = model.scenario(1);
  scenario.parallelism.pipeline = 4;
  scenario.parallelism.layers_per_stage = model.per_stage(4);
  const Topology machine = calm_star(4, {BytesPerSecond{512e6}, 2_us});
  const ProductCost cost(3_us, 2_us, model.samples);
  const Prediction told =
      StepPredictor(machine, cost).predict(scenario, model.workload(), {}).prediction;
  ASSERT_EQ(model.activation(), 512_B);
  const Time message = 2 * 2_us + 1_us;  // two links; 512 B at 512 MB/s
  EXPECT_EQ(told.step, 4 * 8_us + 6 * message);
  // The first rank sends one message and gets one; meanwhile it waits for the others.
  const auto pipeline = static_cast<std::size_t>(Dimension::pipeline);
  EXPECT_EQ(told.roles[0].communication[pipeline], 2 * message);
  EXPECT_EQ(told.roles[1].communication[pipeline], 4 * message);
}

}  // namespace
}  // namespace rehearse::pipeline_step_test
