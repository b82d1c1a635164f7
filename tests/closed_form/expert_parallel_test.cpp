// Expert parallelism: what travels between the ranks that hold different experts, who computes how
// much, and whose gradients are reduced with whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::expert_parallel_test {
namespace {

// Every kernel takes a microsecond.
class Unit final : public CostModel {
 public:
  Seconds compute(const Compute&, const Accelerator&) const override { return Seconds{1e-6}; }
};

constexpr std::int64_t hidden = 64, ffn = 256, experts = 8, top = 2, tokens = 96;

Workload mixture() {
  Workload model = transformer_workload("small", "mixtral",
                                        {.hidden = hidden,
                                         .layers = 2,
                                         .heads = 4,
                                         .kv_heads = 4,
                                         .head_size = 16,
                                         .ffn = ffn,
                                         .vocabulary = 512,
                                         .positions = tokens,
                                         .experts = experts,
                                         .experts_per_token = top,
                                         .learned_positions = false,
                                         .gated = true,
                                         .qkv_bias = false,
                                         .out_bias = false,
                                         .mlp_bias = false,
                                         .tied = false});
  model.seq_length = tokens;
  return model;
}
constexpr std::int64_t expert_weights = 3 * hidden * ffn;

class ExpertStep : public testing::Test {
 protected:
  ExpertStep() {
    scenario.training.scaling = Scaling::weak;
    scenario.training.clip_grad = 0;
    scenario.parallelism.bucket_size = scenario.parallelism.first_bucket_size = 1_GiB;
    scenario.collectives = {.all_reduce = "ring", .all_gather = "ring", .reduce_scatter = "ring"};
  }
  StepPredictor::Answer run(std::size_t ranks) const {
    const Topology machine = calm_star(ranks, {10.0_GBps, 1_us});
    const Unit cost;
    return StepPredictor(machine, cost).predict(scenario, mixture(), {});
  }
  /// Sizes of what travels along a dimension, each with its number.
  static std::map<std::int64_t, int> sizes(const StepProgram& step, Dimension dimension) {
    std::map<std::int64_t, int> found;
    for (const OpTag& tag : step.tags)
      if (tag.communicates && tag.dimension == dimension) ++found[tag.bytes.count()];
    return found;
  }
  static double flops_of(const StepProgram& step, std::string_view name) {
    double flops = 0;
    for (const Program::Op& op : step.program.ops())
      if (op.kind == WorkKind::compute && step.program.names()[op.label.name] == name)
        flops += step.program.compute(op).flops.count();
    return flops;
  }
  static Bytes at_rest(const StepProgram& step, MemoryKind kind) {
    return step.roles.front().at_rest[static_cast<std::size_t>(kind)];
  }
  using Sizes = std::map<std::int64_t, int>;
  Scenario scenario;
};

// Every token goes to `top` experts and comes back, forward and backward: four all-to-alls a block,
// of which (ep - 1)/ep leave the rank.
TEST_F(ExpertStep, FourAllToAllsABlock) {
  for (const std::size_t ep : {2, 4, 8}) {
    scenario.parallelism.expert = ep;
    const StepPredictor::Answer answer = run(8);
    EXPECT_EQ(sizes(answer.step, Dimension::expert), (Sizes{{top * tokens * hidden * 2, 4 * 2}}));
    ASSERT_EQ(answer.step.roles.size(), 1u);
  }
  scenario.parallelism.expert = 1;
  EXPECT_TRUE(sizes(run(8).step, Dimension::expert).empty());
}

// A switch of n links: each rank sends (n-1)/n of its rows at the rate of its link.
TEST_F(ExpertStep, TakesTheTimeOfItsVolume) {
  scenario.parallelism.expert = 4;
  const StepPredictor::Answer answer = run(4);
  const Time alone = time_of("pairwise", CollectiveKind::all_to_all,
                             calm_star(4, {10.0_GBps, 1_us}), Bytes{top * tokens * hidden * 2});
  EXPECT_EQ(answer.prediction.roles[0].communication[static_cast<std::size_t>(Dimension::expert)],
            8 * alone);
  EXPECT_GE(alone.seconds().count(), top * tokens * hidden * 2 * 3 / 4 / 10e9);
}

// Fewer experts with more tokens each: the same products in all.
TEST_F(ExpertStep, WorkIsTheSameMemoryIsNot) {
  const StepPredictor::Answer alone = run(8);
  scenario.parallelism.expert = 4;
  const StepPredictor::Answer spread = run(8);
  for (const char* name : {"experts.up", "experts.down", "experts.up.wgrad", "experts.swiglu"})
    EXPECT_EQ(flops_of(spread.step, name), flops_of(alone.step, name)) << name;
  const std::int64_t fewer = 2 * (experts - experts / 4) * expert_weights;  // two blocks
  for (const MemoryKind kind : {MemoryKind::parameters, MemoryKind::gradients})
    EXPECT_EQ(at_rest(alone.step, kind) - at_rest(spread.step, kind), Bytes{2 * fewer});
}

// The busiest rank has so many more rows, and everybody waits for it; a capacity is computed and
// sent whether it is filled or not.
TEST_F(ExpertStep, ImbalanceAndCapacityAreMoreRows) {
  scenario.parallelism.expert = 8;
  const StepProgram even = run(8).step;
  const auto expect = [&](double factor) {
    const StepProgram step = run(8).step;
    const auto rows = static_cast<std::int64_t>(factor * top * tokens);
    EXPECT_EQ(sizes(step, Dimension::expert), (Sizes{{rows * hidden * 2, 8}})) << factor;
    EXPECT_DOUBLE_EQ(flops_of(step, "experts.up"), factor * flops_of(even, "experts.up"));
  };
  scenario.parallelism.expert_imbalance = 1.5;
  expect(1.5);
  scenario.parallelism.expert_capacity = 1.25;
  expect(1.25);
}

// Gradients of experts are reduced over dp × cp / ep ranks, those of the rest over all.
TEST_F(ExpertStep, GradientsOfExpertsAreReducedApart) {
  const std::int64_t all = mixture().parameters(), dealt = 2 * experts * expert_weights;
  for (const std::size_t ep : {1, 2, 8}) {
    scenario.parallelism.expert = ep;
    const std::int64_t here = dealt / static_cast<std::int64_t>(ep);
    Sizes expected{{2 * (all - dealt), 1}, {2 * here, 1}};
    if (ep == 1) expected = {{2 * all, 1}};
    if (ep == 8) expected = {{2 * (all - dealt), 1}};  // nobody else has them
    EXPECT_EQ(sizes(run(8).step, Dimension::data), expected) << "ep " << ep;
  }
  scenario.parallelism.expert = 2;
  const StepPredictor::Answer answer = run(8);
  const auto ring = [](std::size_t ranks, std::int64_t parameters) {
    return time_of("ring", CollectiveKind::all_reduce, calm_star(ranks, {10.0_GBps, 1_us}),
                   Bytes{2 * parameters});
  };
  EXPECT_EQ(answer.prediction.roles[0].communication[static_cast<std::size_t>(Dimension::data)],
            ring(8, all - dealt) + ring(4, dealt / 2));
}

// ZeRO cuts experts over their own replicas.
TEST_F(ExpertStep, ZeroCutsExpertsOverTheirReplicas) {
  scenario.parallelism.expert = 4;
  scenario.parallelism.zero_stage = 1;
  const StepProgram step = run(8).step;
  const std::int64_t dealt = 2 * experts / 4 * expert_weights;
  const std::int64_t rest = mixture().parameters() - 4 * dealt;
  EXPECT_EQ(at_rest(step, MemoryKind::parameters), Bytes{2 * (rest + dealt)});
  EXPECT_EQ(at_rest(step, MemoryKind::optimizer), Bytes{12 * (rest / 8 + dealt / 2)});
  EXPECT_EQ(sizes(step, Dimension::data), (Sizes{{2 * rest, 2}, {2 * dealt, 2}}))
      << "scattered and gathered";
}

// Experts that no other rank has are held whole and never scattered: nothing comes or goes.
TEST_F(ExpertStep, OfExpertsWithoutReplicasNothingIsScattered) {
  scenario.parallelism.expert = 8;
  scenario.parallelism.zero_stage = 2;
  scenario.training.global_batch_size = 3;
  const StepProgram step = run(8).step;
  const std::int64_t dealt = 2 * expert_weights, rest = mixture().parameters() - 8 * dealt;
  EXPECT_EQ(at_rest(step, MemoryKind::gradients), Bytes{2 * (rest / 8 + dealt)});
  Bytes come, left;
  for (const MemoryChange& change : step.roles.front().changes)
    if (change.kind == MemoryKind::gradients) {
      left += change.bytes;
      come = std::max(come, left);
    }
  EXPECT_EQ(left, 0_B);
  EXPECT_EQ(come, Bytes{2 * rest});
}

// Megatron's dispatcher with tensor ranks: each sends its own part of the tokens, and what arrives
// is gathered over them.
TEST_F(ExpertStep, WithTensorRanksEachSendsItsPart) {
  scenario.parallelism.tensor = 2;
  scenario.parallelism.sequence_parallel = true;
  scenario.parallelism.expert = 4;
  const StepProgram step = run(8).step;
  EXPECT_EQ(sizes(step, Dimension::expert), (Sizes{{top * tokens * hidden * 2 / 2, 8}}));
  // Gathered into the experts and scattered out of them, forward and backward, in two blocks.
  EXPECT_EQ(sizes(step, Dimension::tensor).at(top * tokens * hidden * 2), 8);
}

}  // namespace
}  // namespace rehearse::expert_parallel_test
