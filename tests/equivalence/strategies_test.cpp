// Every lossless strategy leaves the parameters that one device leaves with the
// same global batch: the very Programs that are simulated, run on numbers for
// 20 steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "tests/equivalence/lossless_rows.hpp"

namespace rehearse::strategies_test {
namespace {

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

TEST_P(Equivalence, IsLoweredToTheSameProgramTwice) {
  LoweredTraining lowered{training_of(GetParam())};
  for (const LowerOptions& options :
       {bindable, LowerOptions{}, LowerOptions{.grain = Grain::blocks}}) {
    const StepProgram first = lowered.lowered(options), second = lowered.lowered(options);
    EXPECT_TRUE(first.program == second.program);
    EXPECT_TRUE(std::ranges::equal(first.tags, second.tags));
    EXPECT_EQ(first.notes, second.notes);
  }
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
}  // namespace rehearse::strategies_test
