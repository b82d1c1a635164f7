// Every lossless strategy leaves the parameters that one device leaves with the same global batch:
// the very Programs that are simulated, run on numbers for 20 steps.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <ostream>

#include "tests/equivalence/trainings.hpp"

namespace rehearse {
namespace {

enum class Model : std::uint8_t { mlp, gpt, llama };

struct Row {
  std::string name;
  Model model;
  std::size_t ranks, micro_batch;
  std::function<void(Scenario&)> change = {};
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

constexpr std::size_t global_batch = 8, steps = 20;

// GPT's keys have a bias whose gradient is zero but for rounding. Adam would divide that noise by
// its own size, and every order of additions would train another bias; momentum leaves it small.
SmallTraining on_one_device(Model model, OptimizerKind optimizer) {
  SmallTraining training{.model = model == Model::mlp   ? small_mlp()
                                  : model == Model::gpt ? small_gpt(4)
                                                        : small_llama(4)};
  Training& how = training.scenario.training;
  how.precision = Precision::fp32;
  how.global_batch_size = how.micro_batch_size = global_batch;
  how.optimizer = optimizer;
  training.numbers.learning_rate = optimizer == OptimizerKind::sgd    ? 0.1
                                   : optimizer == OptimizerKind::lars ? 1
                                   : optimizer == OptimizerKind::adam ? 0.001
                                                                      : 0.01;
  return training;
}

SmallTraining training_of(const Row& row) {
  SmallTraining training = on_one_device(
      row.model, row.model == Model::gpt ? OptimizerKind::momentum : OptimizerKind::adam);
  training.ranks = row.ranks;
  training.scenario.training.micro_batch_size = row.micro_batch;
  if (row.change) row.change(training.scenario);
  const SmallTraining same = on_one_device(row.model, training.scenario.training.optimizer);
  training.numbers = same.numbers;
  return training;
}

// What one device leaves.
const TrainingResult& reference(Model model, const Scenario& scenario) {
  static std::map<std::tuple<Model, OptimizerKind, double, std::size_t>, TrainingResult> known;
  const std::size_t batch = scenario.training.global_batch_size;
  const double clip = scenario.training.clip_grad.value_or(-1);
  const auto [slot, is_new] = known.try_emplace({model, scenario.training.optimizer, clip, batch});
  if (is_new) {
    SmallTraining training = on_one_device(model, scenario.training.optimizer);
    Training& how = training.scenario.training;
    how.clip_grad = scenario.training.clip_grad;
    how.global_batch_size = how.micro_batch_size = batch;
    slot->second = train(training, steps);
  }
  return slot->second;
}

void pipeline(Scenario& s, std::string schedule, std::size_t chunks = 1) {
  s.parallelism.pipeline = 2;
  s.parallelism.schedule = std::move(schedule);
  s.parallelism.virtual_pipeline = chunks;
}
void tensor(Scenario& s, bool sequence) {
  s.parallelism.tensor = 2;
  s.parallelism.sequence_parallel = sequence;
}
void zero(Scenario& s, std::size_t stage) { s.parallelism.zero_stage = stage; }
void overlap(Scenario& s, Bytes bucket = 2000_B) {
  s.parallelism.overlap_grad_reduce = true;
  s.parallelism.overlap_param_gather = s.parallelism.zero_stage > 0;
  s.parallelism.bucket_size = bucket;
}

// clang-format off
const std::vector<Row>& rows() {
  using S = Scenario;
  static const std::vector<Row> table{
    {"mlp_dp4", Model::mlp, 4, 2},
    {"mlp_dp2_accumulating", Model::mlp, 2, 1},
    {"mlp_dp2_overlap", Model::mlp, 2, 2, [](S& s) { overlap(s, 400_B); }},
    {"mlp_dp8_sgd", Model::mlp, 8, 1, [](S& s) { s.training.optimizer = OptimizerKind::sgd; }},
    {"mlp_dp2_momentum", Model::mlp, 2, 2, [](S& s) { s.training.optimizer = OptimizerKind::momentum; }},
    {"mlp_dp2_lars", Model::mlp, 2, 4, [](S& s) { s.training.optimizer = OptimizerKind::lars; }},
    {"mlp_dp2_lamb", Model::mlp, 2, 2, [](S& s) { s.training.optimizer = OptimizerKind::lamb; overlap(s); }},
    {"mlp_dp2_clipped", Model::mlp, 2, 2, [](S& s) { s.training.clip_grad = 0.05; }},
    {"mlp_dp2_broadcast", Model::mlp, 2, 4, [](S& s) { s.parallelism.broadcast_parameters = true; }},
    {"mlp_tp2", Model::mlp, 2, 8, [](S& s) { tensor(s, false); }},
    {"mlp_tp4_clipped", Model::mlp, 4, 2, [](S& s) { s.parallelism.tensor = 4; s.training.clip_grad = 0.05; }},
    {"mlp_pp2_tp2", Model::mlp, 4, 2, [](S& s) { tensor(s, false); pipeline(s, "1F1B"); }},
    {"mlp_zero1", Model::mlp, 3, 2, [](S& s) { zero(s, 1); s.training.global_batch_size = 6; }},
    {"mlp_zero2_clipped", Model::mlp, 4, 1, [](S& s) { zero(s, 2); s.training.clip_grad = 0.05; }},
    {"mlp_zero3_overlap", Model::mlp, 4, 1, [](S& s) { zero(s, 3); overlap(s); }},
    {"mlp_full_recomputation_zbh1", Model::mlp, 2, 2, [](S& s) { pipeline(s, "ZBH1"); s.parallelism.recompute = Recompute::full; }},

    {"gpt_dp2", Model::gpt, 2, 4},
    {"gpt_dp4_overlap_accumulating", Model::gpt, 4, 1, [](S& s) { overlap(s); }},
    {"gpt_tp2", Model::gpt, 2, 4, [](S& s) { tensor(s, false); }},
    {"gpt_tp4", Model::gpt, 4, 8, [](S& s) { s.parallelism.tensor = 4; }},
    {"gpt_tp2_sequence", Model::gpt, 2, 2, [](S& s) { tensor(s, true); }},
    {"gpt_gpipe", Model::gpt, 2, 1, [](S& s) { pipeline(s, "GPipe"); }},
    {"gpt_1f1b", Model::gpt, 2, 1, [](S& s) { pipeline(s, "1F1B"); }},
    {"gpt_pp4_1f1b", Model::gpt, 4, 1, [](S& s) { pipeline(s, "1F1B"); s.parallelism.pipeline = 4; }},
    {"gpt_interleaved", Model::gpt, 2, 1, [](S& s) { pipeline(s, "Interleaved1F1B", 2); }},
    {"gpt_looped", Model::gpt, 2, 2, [](S& s) { pipeline(s, "LoopedBFS", 2); }},
    {"gpt_zbh1", Model::gpt, 2, 1, [](S& s) { pipeline(s, "ZBH1"); }},
    {"gpt_interleaved_zero_bubble", Model::gpt, 2, 1, [](S& s) { pipeline(s, "InterleavedZeroBubble", 2); }},
    {"gpt_zbv", Model::gpt, 2, 1, [](S& s) { pipeline(s, "ZBVZeroBubble"); }},
    {"gpt_dualpipev", Model::gpt, 2, 1, [](S& s) { pipeline(s, "DualPipeV"); }},
    {"gpt_no_pipeline", Model::gpt, 2, 2, [](S& s) { pipeline(s, "none"); }},
    {"gpt_pp2_dp2_overlap", Model::gpt, 4, 1, [](S& s) { pipeline(s, "1F1B"); overlap(s); }},
    {"gpt_tp2_pp2_dp2_sequence", Model::gpt, 8, 1, [](S& s) { tensor(s, true); pipeline(s, "1F1B"); overlap(s); }},
    {"gpt_selective_recomputation", Model::gpt, 1, 2, [](S& s) { s.parallelism.recompute = Recompute::selective; }},
    {"gpt_full_recomputation_tp2", Model::gpt, 2, 2, [](S& s) { tensor(s, true); s.parallelism.recompute = Recompute::full; }},
    {"gpt_fused_kernels", Model::gpt, 2, 2, [](S& s) { s.training.fusion = Fusion::elementwise; overlap(s); }},
    {"gpt_sgd", Model::gpt, 2, 2, [](S& s) { s.training.optimizer = OptimizerKind::sgd; }},
    {"gpt_not_clipped", Model::gpt, 2, 2, [](S& s) { s.training.clip_grad = 0; }},
    {"gpt_uneven_stages", Model::gpt, 2, 1, [](S& s) { pipeline(s, "1F1B"); s.parallelism.layers_per_stage = {3, 1}; }},
    {"gpt_other_order", Model::gpt, 8, 1, [](S& s) { tensor(s, false); pipeline(s, "GPipe"); s.parallelism.order = "dp-pp-tp"; }},

    {"llama_dp2_lamb", Model::llama, 2, 2, [](S& s) { s.training.optimizer = OptimizerKind::lamb; }},
    {"llama_dp2_lars_overlap", Model::llama, 2, 2, [](S& s) { s.training.optimizer = OptimizerKind::lars; overlap(s); }},
    {"llama_tp2_sequence", Model::llama, 2, 4, [](S& s) { tensor(s, true); }},
    {"llama_zero1_overlap", Model::llama, 4, 1, [](S& s) { zero(s, 1); overlap(s); }},
    {"llama_zero1_tp2_sequence", Model::llama, 4, 2, [](S& s) { zero(s, 1); tensor(s, true); }},
    {"llama_zero1_zbv", Model::llama, 4, 1, [](S& s) { zero(s, 1); pipeline(s, "ZBVZeroBubble"); overlap(s); }},
    {"llama_zero2_accumulating", Model::llama, 2, 1, [](S& s) { zero(s, 2); }},
    {"llama_zero2_overlap", Model::llama, 4, 1, [](S& s) { zero(s, 2); overlap(s); }},
    {"llama_zero2_shards_and_copies", Model::llama, 4, 2, [](S& s) { zero(s, 2); s.parallelism.zero_shard_ranks = 2; }},
    {"llama_zero3", Model::llama, 4, 2, [](S& s) { zero(s, 3); }},
    {"llama_zero3_overlap_accumulating", Model::llama, 2, 1, [](S& s) { zero(s, 3); overlap(s); s.parallelism.prefetch_layers = 2; }},
    {"llama_zero3_recomputing", Model::llama, 2, 2, [](S& s) { zero(s, 3); overlap(s); s.parallelism.recompute = Recompute::full; }},
    {"llama_zero3_tp2_pp2", Model::llama, 8, 1, [](S& s) { zero(s, 3); tensor(s, false); pipeline(s, "1F1B"); }},
    {"llama_zero1_shards_and_copies", Model::llama, 8, 1, [](S& s) { zero(s, 1); s.parallelism.zero_shard_ranks = 2; overlap(s); }},
    {"llama_tp2_pp2_dp2_zero1_recompute_overlap", Model::llama, 8, 1, [](S& s) {
       zero(s, 1); tensor(s, true); pipeline(s, "1F1B"); overlap(s); s.parallelism.recompute = Recompute::full; }},
    {"llama_tp2_pp2_dp2_zero1_selective_interleaved", Model::llama, 8, 1, [](S& s) {
       zero(s, 1); tensor(s, true); pipeline(s, "Interleaved1F1B", 2); overlap(s); s.parallelism.recompute = Recompute::selective; }},
    {"llama_tp2_pp2_dp2_zbh1_recompute", Model::llama, 8, 1, [](S& s) {
       tensor(s, true); pipeline(s, "ZBH1"); overlap(s); s.parallelism.recompute = Recompute::full; }},
  };
  return table;
}
// clang-format on

class Equivalence : public testing::TestWithParam<Row> {};

TEST_P(Equivalence, LeavesTheParametersOfOneDevice) {
  const SmallTraining training = training_of(GetParam());
  const BoundStep step = bound_step(training);
  const std::vector<Race> races = find_races(step.program, 3);
  for (const Race& race : races) ADD_FAILURE() << describe(step.program, race);
  const TrainingResult expected = reference(GetParam().model, training.scenario);
  const TrainingResult result = train(training, steps);
  ASSERT_EQ(result.losses.size(), steps);
  for (std::size_t s = 0; s < steps; ++s)
    EXPECT_NEAR(result.losses[s], expected.losses[s], 1e-5 * expected.losses[s]) << "step " << s;
  EXPECT_LE(difference(result.parameters, expected.parameters), 1e-5);
  EXPECT_LT(expected.losses.back(), 1.2 * expected.losses.front());
}

// A missing edge would show as other numbers in one of the orders.
TEST_P(Equivalence, AnyLegalOrderGivesTheSameBits) {
  const SmallTraining training = training_of(GetParam());
  EXPECT_EQ(train(training, 2, 17).parameters, train(training, 2).parameters);
}

INSTANTIATE_TEST_SUITE_P(All, Equivalence, testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

// The step with numbers is the simulated one: same ops, same edges, nothing more.
TEST_P(Equivalence, IsTheSimulatedStep) {
  const SmallTraining training = training_of(GetParam());
  LoweredTraining lowered{training};
  const StepProgram simulated = lowered.lowered({.grain = Grain::kernels, .fold = false});
  const Program bound =
      bind(lowered.plan, training.model, std::move(lowered.step), training.numbers).program;
  ASSERT_EQ(bound.size(), simulated.program.size());
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op &real = bound[id], &model = simulated.program[id];
    ASSERT_EQ(real.rank, model.rank) << i;
    ASSERT_EQ(real.stream, model.stream) << i;
    ASSERT_EQ(bound.label(id), simulated.program.label(id)) << i;
    ASSERT_TRUE(std::ranges::equal(bound.after(id), simulated.program.after(id))) << i;
    if (model.kind == WorkKind::compute) {
      ASSERT_EQ(bound.compute(real), simulated.program.compute(model)) << i;
    }
    // A collective is one flow there and whole here; its size is what the tags say.
    if (real.kind == WorkKind::collective) {
      ASSERT_EQ(bound.collective(real).data.size, simulated.tags[i].bytes) << i;
    }
    if (real.kind == WorkKind::transfer) {
      ASSERT_EQ(bound.transfer(real).size, simulated.tags[i].bytes) << i;
    }
  }
}

// Every op that computes has kernels, and its accesses are their operands.
TEST_P(Equivalence, EveryKernelHasItsOperands) {
  const Program program = bound_step(training_of(GetParam())).program;
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::compute) continue;
    std::size_t operands = 0;
    for (const KernelCall& call : program.calls(op)) operands += call.operands;
    ASSERT_GT(operands, 0u);
    ASSERT_EQ(operands, program.accesses(op).size());
  }
}

}  // namespace
}  // namespace rehearse
