// Every lossless strategy leaves the parameters that one device leaves with the
// same global batch: the very Programs that are simulated, run on numbers for
// 20 steps.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <ostream>

#include "tests/equivalence/trainings.hpp"

namespace rehearse {
namespace {

enum class Model : std::uint8_t { mlp, gpt, llama };

using Change = std::function<void(Scenario&)>;

struct Row {
  std::string name;
  Model model;
  std::size_t ranks, micro_batch;
  std::vector<Change> changes = {};
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

constexpr std::size_t global_batch = 8, steps = 20;

// GPT's keys have a bias whose gradient is zero but for rounding. Adam would
// divide that noise by its own size, and every order of additions would train
// another bias; momentum leaves it small.
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
  for (const Change& change : row.changes) change(training.scenario);
  const SmallTraining same = on_one_device(row.model, training.scenario.training.optimizer);
  training.numbers = same.numbers;
  return training;
}

// What one device leaves.
const TrainingResult& reference(Model model, const Scenario& scenario) {
  static std::map<std::tuple<Model, OptimizerKind, double, std::size_t, double, bool>,
                  TrainingResult>
      known;
  const std::size_t batch = scenario.training.global_batch_size;
  const double clip = scenario.training.clip_grad.value_or(-1);
  const double dropout = scenario.training.dropout;
  const bool flash = scenario.training.flash_attention || dropout == 0;
  const auto [slot, is_new] =
      known.try_emplace({model, scenario.training.optimizer, clip, batch, dropout, flash});
  if (is_new) {
    SmallTraining training = on_one_device(model, scenario.training.optimizer);
    Training& how = training.scenario.training;
    how.clip_grad = scenario.training.clip_grad;
    how.global_batch_size = how.micro_batch_size = batch;
    how.dropout = dropout;
    how.flash_attention = flash;
    slot->second = train(training, steps);
  }
  return slot->second;
}

Change pipeline(std::string schedule, std::size_t chunks = 1, std::size_t ranks = 2) {
  return [=](Scenario& s) {
    s.parallelism.pipeline = ranks;
    s.parallelism.schedule = schedule;
    s.parallelism.virtual_pipeline = chunks;
  };
}
Change tensor(std::size_t ranks = 2) {
  return [=](Scenario& s) { s.parallelism.tensor = ranks; };
}
Change sequence() {
  return [](Scenario& s) { s.parallelism.tensor = 2, s.parallelism.sequence_parallel = true; };
}
Change zero(std::size_t stage, std::size_t shard_ranks = 0) {
  return [=](Scenario& s) {
    s.parallelism.zero_stage = stage;
    s.parallelism.zero_shard_ranks = shard_ranks;
  };
}
Change overlap(Bytes bucket = 2000_B) {
  return [=](Scenario& s) {
    s.parallelism.overlap_grad_reduce = true;
    s.parallelism.overlap_param_gather = s.parallelism.zero_stage > 0;
    s.parallelism.bucket_size = bucket;
  };
}
Change recompute(Recompute how) {
  return [=](Scenario& s) { s.parallelism.recompute = how; };
}
// In PyTorch's notation, with the backward pass of one micro-batch in halves.
Change written_schedule() {
  return [](Scenario& s) {
    const std::string file = testing::TempDir() + "rehearse_equivalence_schedule.csv";
    std::ofstream{file} << "0F0,0F1,0F2,,0B0,0F3,0B1,0B2,0B3\n"
                           ",1F0,1F1,1B0,1I1,1W1,1F2,1B2,1F3,1B3\n";
    s.parallelism.pipeline = 2;
    s.parallelism.schedule_csv = file;
  };
}
Change in_parts() {
  return [](Scenario& s) { s.training.flash_attention = false; };
}
Change by(OptimizerKind optimizer) {
  return [=](Scenario& s) { s.training.optimizer = optimizer; };
}
Change clip(double norm) {
  return [=](Scenario& s) { s.training.clip_grad = norm; };
}

Change dropping() {
  return [](Scenario& s) { s.training.dropout = 0.1; };
}

// clang-format off
std::vector<Row> mlp_rows() {
  using enum OptimizerKind;
  constexpr Model mlp = Model::mlp;
  return {
    {"mlp_dp4", mlp, 4, 2},
    {"mlp_dp2_accumulating", mlp, 2, 1},
    {"mlp_dp2_overlap", mlp, 2, 2, {overlap(400_B)}},
    {"mlp_dp8_sgd", mlp, 8, 1, {by(sgd)}},
    {"mlp_dp2_momentum", mlp, 2, 2, {by(momentum)}},
    {"mlp_dp2_lars", mlp, 2, 4, {by(lars)}},
    {"mlp_dp2_lamb", mlp, 2, 2, {by(lamb), overlap()}},
    {"mlp_dp2_clipped", mlp, 2, 2, {clip(0.05)}},
    {"mlp_dp2_broadcast", mlp, 2, 4, {[](Scenario& s) {
       s.parallelism.broadcast_parameters = true; }}},
    {"mlp_tp2", mlp, 2, 8, {tensor()}},
    {"mlp_tp4_clipped", mlp, 4, 2, {tensor(4), clip(0.05)}},
    {"mlp_pp2_tp2", mlp, 4, 2, {tensor(), pipeline("1F1B")}},
    {"mlp_zero1_dp3", mlp, 3, 2, {zero(1), [](Scenario& s) { s.training.global_batch_size = 6; }}},
    {"mlp_zero2_clipped", mlp, 4, 1, {zero(2), clip(0.05)}},
    {"mlp_zero3_overlap", mlp, 4, 1, {zero(3), overlap()}},
    {"mlp_zero2_broadcast", mlp, 2, 2, {zero(2), [](Scenario& s) {
       s.parallelism.broadcast_parameters = true; }}},
    {"mlp_recompute_zbh1", mlp, 2, 2, {pipeline("ZBH1"), recompute(Recompute::full)}},
  };
}

std::vector<Row> gpt_rows() {
  constexpr Model gpt = Model::gpt;
  return {
    {"gpt_dp2", gpt, 2, 4},
    {"gpt_dp4_overlap_accumulating", gpt, 4, 1, {overlap()}},
    {"gpt_tp2", gpt, 2, 4, {tensor()}},
    {"gpt_tp4", gpt, 4, 8, {tensor(4)}},
    {"gpt_tp2_sequence", gpt, 2, 2, {sequence()}},
    {"gpt_dropout_dp2_accumulating", gpt, 2, 2, {dropping()}},
    {"gpt_dropout_tp2_sequence", gpt, 2, 2, {dropping(), sequence()}},
    {"gpt_dropout_probabilities_tp2", gpt, 2, 4, {dropping(), in_parts(), tensor()}},
    {"gpt_dropout_selective_tp2", gpt, 2, 2,
     {dropping(), in_parts(), sequence(), recompute(Recompute::selective)}},
    {"gpt_dropout_tp2_pp2_dp2_recompute", gpt, 8, 1,
     {dropping(), sequence(), pipeline("1F1B"), overlap(), recompute(Recompute::full)}},
    {"gpt_dropout_fused", gpt, 2, 2, {dropping(), in_parts(), [](Scenario& s) {
       s.training.fusion = Fusion::elementwise; }}},
    {"gpt_gpipe", gpt, 2, 1, {pipeline("GPipe")}},
    {"gpt_1f1b", gpt, 2, 1, {pipeline("1F1B")}},
    {"gpt_pp4_1f1b", gpt, 4, 1, {pipeline("1F1B", 1, 4)}},
    {"gpt_interleaved", gpt, 2, 1, {pipeline("Interleaved1F1B", 2)}},
    {"gpt_looped", gpt, 2, 2, {pipeline("LoopedBFS", 2)}},
    {"gpt_zbh1", gpt, 2, 1, {pipeline("ZBH1")}},
    {"gpt_interleaved_zero_bubble", gpt, 2, 1, {pipeline("InterleavedZeroBubble", 2)}},
    {"gpt_zbv", gpt, 2, 1, {pipeline("ZBVZeroBubble")}},
    {"gpt_dualpipev", gpt, 2, 1, {pipeline("DualPipeV")}},
    {"gpt_schedule_csv", gpt, 2, 2, {written_schedule()}},
    {"gpt_no_pipeline", gpt, 2, 2, {pipeline("none")}},
    {"gpt_pp2_dp2_overlap", gpt, 4, 1, {pipeline("1F1B"), overlap()}},
    {"gpt_tp2_pp2_dp2_sequence", gpt, 8, 1, {sequence(), pipeline("1F1B"), overlap()}},
    {"gpt_selective", gpt, 1, 2, {recompute(Recompute::selective)}},
    {"gpt_plain_attention", gpt, 2, 2, {in_parts()}},
    {"gpt_plain_attention_selective_tp2", gpt, 2, 2,
     {in_parts(), sequence(), recompute(Recompute::selective)}},
    {"gpt_recompute_tp2", gpt, 2, 2, {sequence(), recompute(Recompute::full)}},
    {"gpt_fused_kernels", gpt, 2, 2, {overlap(), [](Scenario& s) {
       s.training.fusion = Fusion::elementwise; }}},
    {"gpt_sgd", gpt, 2, 2, {by(OptimizerKind::sgd)}},
    {"gpt_not_clipped", gpt, 2, 2, {clip(0)}},
    {"gpt_uneven_stages", gpt, 2, 1, {pipeline("1F1B"), [](Scenario& s) {
       s.parallelism.layers_per_stage = {3, 1}; }}},
    {"gpt_other_order", gpt, 8, 1, {tensor(), pipeline("GPipe"), [](Scenario& s) {
       s.parallelism.order = "dp-pp-tp"; }}},
  };
}

std::vector<Row> llama_rows() {
  constexpr Model llama = Model::llama;
  const Change full = recompute(Recompute::full), selective = recompute(Recompute::selective);
  return {
    {"llama_dp2_lamb", llama, 2, 2, {by(OptimizerKind::lamb)}},
    {"llama_dp2_lars_overlap", llama, 2, 2, {by(OptimizerKind::lars), overlap()}},
    {"llama_tp2_sequence", llama, 2, 4, {sequence()}},
    {"llama_plain_attention_recompute", llama, 2, 4, {in_parts(), full}},
    {"llama_zero1_overlap", llama, 4, 1, {zero(1), overlap()}},
    {"llama_zero1_tp2_sequence", llama, 4, 2, {zero(1), sequence()}},
    {"llama_zero1_zbv", llama, 4, 1, {zero(1), pipeline("ZBVZeroBubble"), overlap()}},
    {"llama_zero2_accumulating", llama, 2, 1, {zero(2)}},
    {"llama_zero2_overlap", llama, 4, 1, {zero(2), overlap()}},
    {"llama_zero2_shards_and_copies", llama, 4, 2, {zero(2, 2)}},
    {"llama_dropout_zero3_recomputing", llama, 2, 2, {dropping(), zero(3), overlap(), full}},
    {"llama_dropout_zbv", llama, 2, 1, {dropping(), pipeline("ZBVZeroBubble")}},
    {"llama_zero3", llama, 4, 2, {zero(3)}},
    {"llama_zero3_overlap_accumulating", llama, 2, 1, {zero(3), overlap(), [](Scenario& s) {
       s.parallelism.prefetch_layers = 2; }}},
    {"llama_zero3_recomputing", llama, 2, 2, {zero(3), overlap(), full}},
    {"llama_zero3_tp2_pp2", llama, 8, 1, {zero(3), tensor(), pipeline("1F1B")}},
    {"llama_zero1_shards_and_copies", llama, 8, 1, {zero(1, 2), overlap()}},
    {"llama_tp2_pp2_dp2_zero1_recompute_overlap", llama, 8, 1,
     {zero(1), sequence(), pipeline("1F1B"), overlap(), full}},
    {"llama_tp2_pp2_dp2_zero1_selective_interleaved", llama, 8, 1,
     {zero(1), sequence(), pipeline("Interleaved1F1B", 2), overlap(), selective}},
    {"llama_tp2_pp2_dp2_zbh1_recompute", llama, 8, 1,
     {sequence(), pipeline("ZBH1"), overlap(), full}},
  };
}
// clang-format on

std::vector<Row> rows() {
  std::vector<Row> all = mlp_rows();
  for (const std::vector<Row>& more : {gpt_rows(), llama_rows()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

class Equivalence : public testing::TestWithParam<Row> {};

TEST_P(Equivalence, LeavesTheParametersOfOneDevice) {
  const SmallTraining training = training_of(GetParam());
  const BoundStep step = bound_step(training);
  const std::vector<Race> races = find_races(step.program(), 3);
  for (const Race& race : races) ADD_FAILURE() << describe(step.program(), race);
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

// The step with numbers is the simulated one: same ops, same edges, nothing
// more.
TEST_P(Equivalence, IsTheSimulatedStep) {
  const SmallTraining training = training_of(GetParam());
  LoweredTraining lowered{training};
  const StepProgram simulated = lowered.lowered({.grain = Grain::kernels, .fold = false});
  const Program bound =
      bind(lowered.plan, training.model, std::move(lowered.step), training.numbers).program();
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
    // A collective is one flow there and whole here; its size is what the tags
    // say.
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
  const Program program = bound_step(training_of(GetParam())).program();
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
