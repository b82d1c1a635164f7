// What ranks share at the end of a step: tied embeddings on two stages, gradients of norms in
// parts, and the norm of all gradients before the optimizer.
#include "strategies/methods/shared_gradients.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::shared_gradients_test {
namespace {

// Every kernel takes a microsecond.
class Unit final : public CostModel {
 public:
  Seconds compute(const Compute&, const Accelerator&) const override { return Seconds{1e-6}; }
};

constexpr std::int64_t hidden = 64, vocabulary = 512;

Workload small_gpt(bool tied) {
  return transformer_workload("small", "gpt",
                              {.hidden = hidden,
                               .layers = 4,
                               .heads = 4,
                               .kv_heads = 4,
                               .head_size = 16,
                               .ffn = 256,
                               .vocabulary = vocabulary,
                               .positions = 32,
                               .tied = tied});
}

class SharedStep : public testing::Test {
 protected:
  SharedStep() {
    scenario.training.scaling = Scaling::weak;
    scenario.training.clip_grad = 0;
    scenario.collectives = {.all_reduce = "ring", .all_gather = "ring", .reduce_scatter = "ring"};
  }
  StepPredictor::Answer run(bool tied, std::size_t ranks) const {
    return StepPredictor(machine(ranks), cost).predict(scenario, small_gpt(tied), {});
  }
  const Topology& machine(std::size_t ranks) const {
    machine_ = calm_star(ranks, {10.0_GBps, 1_us});
    return machine_;
  }
  static Time ring(const Topology& machine, Bytes size) {
    return time_of("ring", CollectiveKind::all_reduce, machine, size);
  }

  /// Collectives along a dimension that belong to no layer.
  static std::vector<std::size_t> exchanges(const StepProgram& step, Dimension dimension) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < step.tags.size(); ++i)
      if (step.tags[i].communicates && step.tags[i].phase == Phase::gradients &&
          step.tags[i].dimension == dimension)
        found.push_back(i);
    return found;
  }
  /// When the optimizer of a pipeline rank begins; its kernels of other names do not count.
  static Time optimizer_begin(const StepPredictor::Answer& answer, Rank rank) {
    Time begin = Time::never();
    const Program& program = answer.step.program;
    for (std::size_t i = 0; i < program.size(); ++i)
      if (program.ops()[i].kind == WorkKind::compute && program.ops()[i].rank == rank &&
          program.names()[program.ops()[i].label.name] == "optimizer.adam")
        begin = std::min(begin, answer.timeline.spans[i].begin);
    return begin;
  }

  Scenario scenario;
  const Unit cost;
  mutable Topology machine_;
};

Bytes at_rest(const Role& role, MemoryKind kind) {
  return role.at_rest[static_cast<std::size_t>(kind)];
}

// The last stage holds as much as a model whose head has weights of its own.
TEST_F(SharedStep, TheLastStageHoldsACopyOfTheEmbedding) {
  scenario.parallelism.pipeline = 4;
  const StepProgram tied = run(true, 4).step, own = run(false, 4).step;
  ASSERT_EQ(tied.roles.size(), 4u);
  for (const MemoryKind kind :
       {MemoryKind::parameters, MemoryKind::gradients, MemoryKind::optimizer})
    for (std::size_t r = 0; r < 4; ++r)
      EXPECT_EQ(at_rest(tied.roles[r], kind), at_rest(own.roles[r], kind)) << "stage " << r;
  // Norm of the block 4h, final norm 2h, block 12h² + 9h, and the table.
  EXPECT_EQ(at_rest(tied.roles[3], MemoryKind::parameters).count(),
            2 * (12 * hidden * hidden + 13 * hidden + 2 * hidden + vocabulary * hidden));
}

// On one pipeline rank, whether alone or in a V, there is one table.
TEST_F(SharedStep, OnOneRankThereIsNoCopy) {
  const auto parameters = [&](std::size_t ranks) {
    const StepProgram step = run(true, ranks).step;
    EXPECT_TRUE(exchanges(step, Dimension::pipeline).empty());
    Bytes all;
    for (const Role& role : step.roles) all += at_rest(role, MemoryKind::parameters);
    return all.count();
  };
  const std::int64_t whole = 2 * small_gpt(true).parameters();
  EXPECT_EQ(parameters(1), whole);
  scenario.parallelism.pipeline = 2;
  scenario.parallelism.schedule = "ZBVZeroBubble";
  scenario.training.global_batch_size = 4;
  EXPECT_EQ(parameters(2), whole);
}

// Two ranks in a ring: 2(2 us + S/2 / 10 GB/s), after the backward pass of the first stage; both
// wait for it, those between do not.
TEST_F(SharedStep, GradientsOfTheCopiesAreSummed) {
  scenario.parallelism.pipeline = 3;
  scenario.parallelism.layers_per_stage = {1, 1, 2};
  const StepPredictor::Answer answer = run(true, 3);
  const std::vector<std::size_t> found = exchanges(answer.step, Dimension::pipeline);
  ASSERT_EQ(found.size(), 1u);
  const Timeline::Span span = answer.timeline.spans[found.front()];
  const Bytes table{2 * vocabulary * hidden};
  EXPECT_EQ(answer.step.tags[found.front()].bytes, table);
  EXPECT_EQ(span.end - span.begin, 2 * (2_us + Time::round(Bytes{table.count() / 2} / 10.0_GBps)));
  EXPECT_EQ(span.begin, span_of(answer.step.actions[0].back(), answer.timeline).end);
  EXPECT_EQ(optimizer_begin(answer, Rank{0}), span.end);
  EXPECT_EQ(optimizer_begin(answer, Rank{2}), span.end);
  EXPECT_LT(optimizer_begin(answer, Rank{1}), span.begin);
}

// A share of it where ZeRO cuts gradients; all of it under a distributed optimizer, as Megatron.
TEST_F(SharedStep, ZeroCutsWhatIsSummed) {
  scenario.parallelism.pipeline = 2;
  for (const std::size_t zero : {0, 1, 2, 3}) {
    scenario.parallelism.zero_stage = zero;
    const StepProgram step = run(true, 4).step;
    const std::vector<std::size_t> found = exchanges(step, Dimension::pipeline);
    ASSERT_FALSE(found.empty());
    for (const std::size_t i : found)
      EXPECT_EQ(step.tags[i].bytes.count(), 2 * vocabulary * hidden / (zero < 2 ? 1 : 2)) << zero;
  }
}

// Korthikanti et al. 2022: outside the tensor-parallel regions each rank has a part of the tokens.
// Two norms and two biases behind row splits in a block (6h), and the last norm (2h).
TEST_F(SharedStep, GradientsOfNormsAreSummedUnderSequenceParallelism) {
  scenario.parallelism.tensor = 2;
  EXPECT_TRUE(exchanges(run(true, 2).step, Dimension::tensor).empty());
  scenario.parallelism.sequence_parallel = true;
  const StepPredictor::Answer answer = run(true, 2);
  const std::vector<std::size_t> found = exchanges(answer.step, Dimension::tensor);
  ASSERT_EQ(found.size(), 1u) << "once a step";
  EXPECT_EQ(answer.step.tags[found.front()].bytes.count(), 2 * (4 * 6 + 2) * hidden);
  const Timeline::Span span = answer.timeline.spans[found.front()];
  EXPECT_EQ(span.end - span.begin, ring(machine_, Bytes{2 * 26 * hidden}));
  // The sums are copied back to where the optimizer reads them: a kernel of 1 us.
  EXPECT_EQ(optimizer_begin(answer, Rank{0}), span.end + 1_us);
}

// Ranks with different gradients: tp × pp, and shards under ZeRO. One kernel, and a sum of 4 bytes
// along each dimension.
TEST_F(SharedStep, TheNormIsTakenOverAllWhoHoldDifferentGradients) {
  struct Row {
    std::size_t tp, pp, dp, zero, shards;
    std::vector<std::size_t> sums;  // ranks in each
  };
  for (const Row& row :
       {Row{1, 1, 4, 0, 0, {}}, Row{2, 1, 2, 0, 0, {2}}, Row{1, 2, 2, 0, 0, {2}},
        Row{2, 4, 2, 0, 0, {2, 4}}, Row{1, 1, 4, 1, 0, {4}}, Row{2, 2, 4, 1, 0, {2, 4, 2}},
        Row{2, 1, 4, 2, 0, {2, 4}}, Row{1, 4, 4, 3, 2, {2, 4}}}) {
    scenario.parallelism.tensor = row.tp;
    scenario.parallelism.pipeline = row.pp;
    scenario.parallelism.zero_stage = row.zero;
    scenario.parallelism.zero_shard_ranks = row.shards;
    const auto step = [&](std::optional<double> longest) {
      scenario.training.clip_grad = longest;
      return run(false, row.tp * row.pp * row.dp).prediction.step;
    };
    Time expected = step(0) + 1_us;
    for (const std::size_t ranks : row.sums) expected += ring(machine(ranks), 4_B);
    EXPECT_EQ(step(1.0), expected)
        << row.tp << " x " << row.pp << " x " << row.dp << ", zero " << row.zero;
    EXPECT_EQ(step(std::nullopt), step(1.0)) << "a model of sequences clips";
  }
}

TEST_F(SharedStep, OtherModelsDoNotClipUnlessAsked) {
  const EqualLayers layers{.count = 2};
  const auto step = [&](std::optional<double> longest) {
    Scenario plain = layers.scenario(1);
    plain.training.clip_grad = longest;
    return StepPredictor(machine(2), cost).predict(plain, layers.workload(), {}).prediction.step;
  };
  EXPECT_EQ(step(std::nullopt), step(0));
  EXPECT_EQ(step(2.5), step(0) + 1_us);
}

}  // namespace
}  // namespace rehearse::shared_gradients_test
