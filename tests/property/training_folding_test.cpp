// Equal work, equal answer: ranks that are alike simulated once or all, kernels one by one or in
// blocks, every micro-batch or only until they repeat.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "sim/engine/cost_model.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/schedules/schedules.hpp"
#include "tests/support/training.hpp"
#include "tests/support/training_jobs.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::training_folding_test {
namespace {

/// What a rank did and when, as one number: its ops, in the order of their beginning.
class RankDays {
 public:
  explicit RankDays(const StepPredictor::Answer& answer) {
    const Program& program = answer.step.program;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const Program::Op& op = program.ops()[i];
      const Timeline::Span& span = answer.timeline.spans[i];
      const OpTag& tag = answer.step.tags[i];
      std::uint64_t what = mix(static_cast<std::uint64_t>(span.begin.ps()),
                               static_cast<std::uint64_t>(span.end.ps()));
      what = mix(what, static_cast<std::uint64_t>(tag.phase));
      what = mix(what, std::uint64_t{tag.stage} << 32 | tag.microbatch);
      what = mix(what, static_cast<std::uint64_t>(tag.bytes.count()));
      what = mix(what, std::hash<std::string>{}(program.names()[op.label.name]));
      if (op.kind != WorkKind::transfer) {
        days_[op.rank] += what;
        continue;
      }
      const Connection& way = program[program.transfer(op).connection];
      if (way.others.empty()) {
        days_[way.source] += mix(what, 1);
        days_[way.target] += mix(what, 2);
      }
      for (const Rank rank : way.others) days_[rank] += what;
    }
  }
  std::uint64_t of(Rank rank) const { return days_.at(rank); }

 private:
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    a = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
    return (a ^ (a >> 29)) * 0x94d049bb133111eb;
  }
  std::map<Rank, std::uint64_t> days_;  // sums: the order of ops in the Program does not matter
};

std::string text(const TimeUse& use) {
  std::string out = fmt::format("compute {} bubble {} exposed", use.compute.ps(), use.bubble.ps());
  for (const Time time : use.exposed) out += fmt::format(" {}", time.ps());
  return out;
}

void expect_same(const RoleReport& a, const RoleReport& b) {
  EXPECT_EQ(text(a.time), text(b.time)) << a.name;
  EXPECT_EQ(a.communication, b.communication) << a.name;
  EXPECT_EQ(a.peak, b.peak) << a.name;
  EXPECT_EQ(a.peak_bytes, b.peak_bytes) << a.name;
}

void expect_same(const Prediction& a, const Prediction& b) {
  EXPECT_EQ(a.step, b.step);
  ASSERT_EQ(a.roles.size(), b.roles.size());
  for (std::size_t r = 0; r < a.roles.size(); ++r) expect_same(a.roles[r], b.roles[r]);
  EXPECT_EQ(text(a.mean), text(b.mean));
}

/// Folded roles and unfolded ranks: as many of each kind of day, and the same reports.
void expect_same_days(const StepPredictor::Answer& folded, const StepPredictor::Answer& whole) {
  EXPECT_EQ(folded.prediction.step, whole.prediction.step);
  const RankDays few(folded), all(whole);
  std::map<std::uint64_t, std::uint32_t> played, there;
  std::map<std::uint64_t, const RoleReport*> reports;
  for (const RoleReport& role : folded.prediction.roles) {
    played[few.of(role.rank)] += role.ranks;
    reports.emplace(few.of(role.rank), &role);
  }
  for (const RoleReport& role : whole.prediction.roles) {
    ++there[all.of(role.rank)];
    const auto report = reports.find(all.of(role.rank));
    if (report != reports.end()) expect_same(*report->second, role);
  }
  EXPECT_EQ(played, there) << "ranks of each kind of day";
}

class EqualAnswers : public testing::TestWithParam<std::size_t> {
 protected:
  TrainingJob job_ = training_jobs()[GetParam()];
  Topology machine_ = job_.topology();
  Roofline cost_;
  StepPredictor predictor_{machine_, cost_, Crowds::by_flows};

  StepPredictor::Answer predict(const StepPredictor::Detail& detail) {
    return predictor_.predict(job_.scenario, job_.model, detail);
  }
};

TEST_P(EqualAnswers, FoldedOrNot) {
  SCOPED_TRACE(job_.name);
  ASSERT_LE(machine_.rank_count(), 64u);
  const StepPredictor::Answer folded = predict({});
  expect_same_days(folded, predict({.fold = false}));
  std::uint32_t ranks = 0;
  for (const RoleReport& role : folded.prediction.roles) ranks += role.ranks;
  EXPECT_EQ(ranks, machine_.rank_count());
}

TEST_P(EqualAnswers, InKernelsOrInBlocks) {
  SCOPED_TRACE(job_.name);
  const StepPredictor::Answer kernels = predict({}), blocks = predict({.grain = Grain::blocks});
  expect_same(kernels.prediction, blocks.prediction);
  EXPECT_LE(blocks.step.program.size(), kernels.step.program.size());
  expect_same(kernels.prediction, predictor_.quick(job_.scenario, job_.model));
}

// No stage can be done before its kernels are, and no rank before its gradients have left it.
TEST_P(EqualAnswers, NotBelowTheBounds) {
  SCOPED_TRACE(job_.name);
  const StepPredictor::Answer answer = predict({});
  std::map<Rank, Time> computing;
  for (std::size_t i = 0; i < answer.step.program.size(); ++i) {
    const Program::Op& op = answer.step.program.ops()[i];
    if (op.kind == WorkKind::compute)
      computing[op.rank] +=
          duration_of(answer.step.program.compute(op), machine_.accelerators.front(), cost_);
  }
  for (const RoleReport& role : answer.prediction.roles) {
    EXPECT_GE(role.time.compute, computing[role.rank]) << role.name;
    EXPECT_GE(answer.prediction.step, computing[role.rank]) << role.name;
    Time all = role.time.compute + role.time.bubble;
    for (std::size_t d = 0; d < dimension_count; ++d) {
      all += role.time.exposed[d];
      EXPECT_LE(role.time.exposed[d], role.communication[d]) << role.name;
    }
    EXPECT_EQ(all, answer.prediction.step) << "every picosecond is somewhere";
  }
  for (std::size_t i = 0; i < answer.step.program.size(); ++i) {
    const OpTag& tag = answer.step.tags[i];
    if (!tag.communicates || tag.dimension != Dimension::data) continue;
    const Timeline::Span& span = answer.timeline.spans[i];
    double fastest = 0;
    for (const Link& link : machine_.links()) fastest = std::max(fastest, link.bandwidth.count());
    // At least half of the data leaves some rank, by all of its links at once.
    EXPECT_GE((span.end - span.begin).seconds().count() * fastest * 64,
              0.5 * static_cast<double>(tag.bytes.count()));
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, EqualAnswers, testing::Range<std::size_t>(0, 42));

TEST(TrainingJobs, AreAllTested) { EXPECT_EQ(training_jobs().size(), 42u); }

// One of anything is none of it.
TEST(EqualWork, OneRankOfEachIsTheSingleDevice) {
  const Topology single = load_cluster("dgx-h100", {.nodes = 1, .gpus_per_node = 1});
  const Roofline cost;
  StepPredictor predictor(single, cost);
  const Workload model = shortened("gpt2", 4);
  Scenario plain;
  plain.training.global_batch_size = 4;
  const Prediction expected = predictor.predict(plain, model, {}).prediction;
  EXPECT_EQ(expected.mean.bubble, Time{});
  for (const char* schedule : {"1F1B", "GPipe", "none", "Interleaved1F1B", "LoopedBFS"})
    for (const std::size_t zero : {0, 1, 2, 3})
      for (const bool overlap : {false, true}) {
        Scenario scenario = plain;
        scenario.parallelism.schedule = schedule;
        scenario.parallelism.zero_stage = zero;
        scenario.parallelism.overlap_grad_reduce = overlap;
        scenario.parallelism.overlap_param_gather = overlap && zero > 0;
        scenario.parallelism.data = 1;
        const Prediction told = predictor.predict(scenario, model, {}).prediction;
        EXPECT_EQ(told.step, expected.step) << schedule << " zero " << zero;
        EXPECT_EQ(told.mean, expected.mean) << schedule << " zero " << zero;
      }
}

/// Predictors remember what collectives cost: one for each machine.
class RandomStrategies : public testing::Test {
 protected:
  template <class Check>
  void over_jobs(std::uint64_t first, std::uint64_t count, Check check) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      Draw draw(seed);
      const TrainingJob job = random_job(draw);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << job.name);
      const auto [slot, is_new] = machines_.try_emplace(job.machine);
      if (is_new) {
        slot->second.topology = job.topology();
        slot->second.predictor =
            std::make_unique<StepPredictor>(slot->second.topology, cost_, crowds_);
      }
      check(*slot->second.predictor, job);
    }
  }

 private:
  struct Machine {
    Topology topology;
    std::unique_ptr<StepPredictor> predictor;
  };
  std::map<std::string, Machine> machines_;

 protected:
  const Roofline cost_{};
  Crowds crowds_ = Crowds::by_flows;
};

TEST_F(RandomStrategies, QuickIsPredict) {
  std::size_t skipped = 0;
  over_jobs(0, 80, [&](StepPredictor& predictor, const TrainingJob& job) {
    const Prediction slow = predictor.predict(job.scenario, job.model, {}).prediction;
    const Prediction fast = predictor.quick(job.scenario, job.model);
    expect_same(slow, fast);
    skipped += fast.simulation.ops < slow.simulation.ops / 4;
  });
  EXPECT_GT(skipped, 5u) << "some of them repeat";
}

// The step is the same whoever is asked; ranks that are alike may be picoseconds apart in it.
TEST_F(RandomStrategies, WithEveryTransferQuickIsPredictAndFoldedIsUnfolded) {
  crowds_ = Crowds::by_transfers;
  std::size_t differ = 0;
  over_jobs(5000, 25, [&](StepPredictor& predictor, const TrainingJob& job) {
    const StepPredictor::Answer answer = predictor.predict(job.scenario, job.model, {});
    expect_same(answer.prediction, predictor.quick(job.scenario, job.model));
    const Prediction unfolded =
        predictor.predict(job.scenario, job.model, {.fold = false}).prediction;
    EXPECT_EQ(answer.prediction.step, unfolded.step);
    const StepPredictor::Detail blocks{.grain = Grain::blocks};
    EXPECT_EQ(predictor.predict(job.scenario, job.model, blocks).prediction.step,
              answer.prediction.step);
    const Topology machine = job.topology();
    StepPredictor by_flows(machine, cost_, Crowds::by_flows);
    differ += by_flows.quick(job.scenario, job.model).step != answer.prediction.step;
  });
  EXPECT_GT(differ, 3u) << "in some of them exchanges meet";
}

// The inputs' half of the embedding's backward pass ends with an exchange: gathers that follow the
// layer wait for it in both grains.
TEST_F(RandomStrategies, LayersMayEndWithAnExchange) {
  over_jobs(1389, 1, [&](StepPredictor& predictor, const TrainingJob& job) {
    ASSERT_EQ(job.scenario.parallelism.schedule, "ZBH1");
    ASSERT_TRUE(job.scenario.parallelism.sequence_parallel);
    const auto detail = StepPredictor::Detail{.grain = Grain::blocks};
    expect_same(predictor.predict(job.scenario, job.model, {}).prediction,
                predictor.predict(job.scenario, job.model, detail).prediction);
  });
}

// Some schedules take certain numbers of micro-batches only; a shortcut must keep to them.
TEST(EverySchedule, IsTheSameQuickly) {
  const Topology machine = load_cluster("dgx-a100", {.nodes = 1});
  const Roofline cost;
  StepPredictor predictor(machine, cost);
  Scenario scenario{.model = {.preset = "gpt2-medium"}};
  const Workload model = build_workload(scenario.model);
  scenario.parallelism.pipeline = 4;
  std::size_t predicted = 0;
  for (const ScheduleKind& kind : schedules())
    for (const std::size_t chunks : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
      for (const std::size_t microbatches : {96u, 98u, 128u, 150u}) {
        if (refusal(kind, {4, microbatches, chunks})) continue;
        scenario.parallelism.schedule = kind.name;
        scenario.parallelism.virtual_pipeline = chunks;
        scenario.training.global_batch_size = 2 * microbatches;
        SCOPED_TRACE(
            fmt::format("{} with {} chunks, {} micro-batches", kind.name, chunks, microbatches));
        expect_same(predictor.predict(scenario, model, {}).prediction,
                    predictor.quick(scenario, model));
        ++predicted;
      }
  EXPECT_GT(predicted, 30u);
}

TEST_F(RandomStrategies, FoldedOrNot) {
  over_jobs(1000, 40, [&](StepPredictor& predictor, const TrainingJob& job) {
    expect_same_days(predictor.predict(job.scenario, job.model, {}),
                     predictor.predict(job.scenario, job.model, {.fold = false}));
  });
}

/// Of 16 ranks: slow ones, pauses, jitter, each now and then.
Imperfection random_imperfection(Draw& draw) {
  Imperfection imperfection{.seed = draw.below(100)};
  const auto some_ranks = [&] {
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < 16; ++r)
      if (draw.once_in(5)) ranks.push_back(r);
    return ranks;
  };
  imperfection.slow_ranks = some_ranks();
  if (!imperfection.slow_ranks.empty())
    imperfection.slow_rank_factor = draw.once_in(2) ? 1.7 : 1.01;
  if (draw.once_in(2)) {
    imperfection.pause_ranks = some_ranks();
    imperfection.pause_every = draw.once_in(2) ? 300_us : 20_us;
    imperfection.pause_length = 17_us;
    imperfection.pause_together = draw.once_in(2);
  }
  if (draw.once_in(8)) imperfection.kernel_jitter = 0.3;
  if (draw.once_in(8)) imperfection.rank_jitter = 0.1;
  if (draw.once_in(8)) imperfection.network_jitter = 0.2;
  return imperfection;
}

// What breaks the symmetry unfolds what it touches, and no more of it is needed.
TEST_F(RandomStrategies, ImperfectFoldedOrNotQuickOrNot) {
  std::size_t folded = 0, number = 0;
  over_jobs(2000, 60, [&](StepPredictor& predictor, TrainingJob job) {
    Draw draw(++number);
    job.scenario.imperfection = random_imperfection(draw);
    const StepPredictor::Answer answer = predictor.predict(job.scenario, job.model, {});
    expect_same_days(answer, predictor.predict(job.scenario, job.model, {.fold = false}));
    expect_same(answer.prediction,
                predictor.predict(job.scenario, job.model, {.grain = Grain::blocks}).prediction);
    expect_same(answer.prediction, predictor.quick(job.scenario, job.model));
    folded += answer.prediction.roles.size() < 16;
  });
  EXPECT_GT(folded, 15u) << "slow ranks leave the others alike";
}

/// Compression, mixed precision and fusion, as far as the strategy allows.
void draw_methods(Draw& draw, Scenario& scenario) {
  Training& training = scenario.training;
  training.precision = draw.once_in(2) ? Precision::fp16 : Precision::bf16;
  if (training.precision == Precision::fp16 && draw.once_in(2))
    training.loss_scaling = LossScaling::dynamic;
  training.autocast = draw.once_in(3);
  if (draw.once_in(2)) training.fusion = Fusion::elementwise;
  training.dropout = draw.once_in(2) ? 0.1 : 0;
  const std::size_t data = 16 / (scenario.parallelism.tensor * scenario.parallelism.pipeline);
  if (scenario.parallelism.zero_stage > 0 || data == 1) return;
  const auto methods = {CompressionKind::none, CompressionKind::int8, CompressionKind::dgc};
  scenario.compression.method = draw.of(std::vector(methods));
  scenario.compression.sparsity = draw.once_in(2) ? 0.9 : 0.999;
  if (scenario.compression.method == CompressionKind::dgc)
    training.optimizer = draw.once_in(2) ? OptimizerKind::sgd : OptimizerKind::momentum;
}

TEST_F(RandomStrategies, WithAnyMethodFoldedOrNotQuickOrNot) {
  std::size_t number = 0, compressed = 0;
  over_jobs(3000, 60, [&](StepPredictor& predictor, TrainingJob job) {
    Draw draw(++number);
    draw_methods(draw, job.scenario);
    const StepPredictor::Answer answer = predictor.predict(job.scenario, job.model, {});
    expect_same_days(answer, predictor.predict(job.scenario, job.model, {.fold = false}));
    expect_same(answer.prediction,
                predictor.predict(job.scenario, job.model, {.grain = Grain::blocks}).prediction);
    expect_same(answer.prediction, predictor.quick(job.scenario, job.model));
    compressed += job.scenario.compression.method != CompressionKind::none;
  });
  EXPECT_GT(compressed, 5u);
}

}  // namespace
}  // namespace rehearse::training_folding_test
