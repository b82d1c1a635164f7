// Training in 16 bits with fp32 masters and dynamic loss scaling: an MLP against plain loops with
// their own roundings, transformers against one device, steps that overflow, growth of the scale,
// checkpoints, and the loss that is reached.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/equivalence/lossless_rows.hpp"
#include "tests/equivalence/plain_mixed.hpp"

namespace rehearse::mixed_precision_test {
namespace {

// 2^22 / 8 is far beyond fp16: the first steps are skipped. After four good ones it doubles.
SmallTraining mixed(Model model, std::size_t ranks, std::size_t micro_batch, Precision precision) {
  SmallTraining training = on_one_device(model, OptimizerKind::momentum);
  training.ranks = ranks;
  Training& how = training.scenario.training;
  how.precision = precision;
  how.micro_batch_size = micro_batch;
  if (precision == Precision::fp16) how.loss_scaling = LossScaling::dynamic;
  how.loss_scale_window = 4;
  training.numbers.learning_rate = 0.05;
  training.numbers.loss_scale = 0x1p+22;
  return training;
}

struct MixedCase {
  std::string name;
  std::size_t ranks, micro_batch;
  Precision precision;
  PlainMixed::Shape shape;
  std::vector<Change> changes = {};
};
void PrintTo(const MixedCase& row, std::ostream* out) { *out << row.name; }

Change autocast() {
  return [](Scenario& s) { s.training.autocast = true; };
}
Change wide_gradients() {
  return [](Scenario& s) { s.training.gradients_in_fp32 = true; };
}

// clang-format off
std::vector<MixedCase> mixed_cases() {
  constexpr Precision fp16 = Precision::fp16, bf16 = Precision::bf16;
  return {
    {"fp16_alone", 1, 8, fp16, {1, 1, 8}},
    {"bf16_alone", 1, 8, bf16, {1, 1, 8}},
    {"fp16_accumulating", 1, 2, fp16, {1, 4, 2}},
    {"fp16_accumulating_in_fp32", 1, 2, fp16, {1, 4, 2}, {wide_gradients()}},
    {"fp16_dp4", 4, 2, fp16, {4, 1, 2}, {overlap(400_B)}},
    {"bf16_dp4_in_fp32", 4, 2, bf16, {4, 1, 2}, {wide_gradients(), overlap(400_B)}},
    {"fp16_zero1", 4, 2, fp16, {4, 1, 2}, {zero(1), overlap(400_B)}},
    {"fp16_zero2_in_fp32", 4, 2, fp16, {4, 1, 2}, {zero(2), wide_gradients()}},
    {"fp16_zero3", 4, 2, fp16, {4, 1, 2}, {zero(3), overlap()}},
    {"bf16_zero3_in_fp32", 4, 2, bf16, {4, 1, 2}, {zero(3), wide_gradients()}},
    {"fp16_pp2", 2, 2, fp16, {1, 4, 2}, {pipeline("1F1B")}},
    {"fp16_pp2_interleaved_in_fp32", 2, 2, fp16, {1, 4, 2},
     {pipeline("Interleaved1F1B", 2), wide_gradients()}},
    {"fp16_tp2", 2, 8, fp16, {1, 1, 8, 2}, {tensor()}},
    {"bf16_tp2_in_fp32", 2, 4, bf16, {1, 2, 4, 2}, {tensor(), wide_gradients()}},
    {"fp16_autocast_dp2_accumulating", 2, 2, fp16, {2, 2, 2}, {autocast(), overlap(400_B)}},
    {"bf16_autocast_tp2_zero3", 4, 2, bf16, {2, 2, 2, 2}, {autocast(), tensor(), zero(3)}},
    {"fp16_tp2_pp2_dp2_zero1", 8, 2, fp16, {2, 2, 2, 2},
     {tensor(), pipeline("1F1B"), zero(1), recompute(Recompute::full)}},
  };
}
// clang-format on

SmallTraining training_of(const MixedCase& row) {
  SmallTraining training = mixed(Model::mlp, row.ranks, row.micro_batch, row.precision);
  for (const Change& change : row.changes) change(training.scenario);
  return training;
}

/// How far apart two sets of parameters are.
double way(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double squares = 0;
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::size_t i = 0; i < a[t].values.size(); ++i) {
      const double apart =
          static_cast<double>(a[t].values[i]) - static_cast<double>(b.at(t).values.at(i));
      squares += apart * apart;
    }
  return std::sqrt(squares);
}

/// The step with numbers has the ops, edges and bytes of the simulated one.
void expect_simulated(const SmallTraining& training) {
  LoweredTraining lowered{training};
  const StepProgram simulated = lowered.lowered({.grain = Grain::kernels, .fold = false});
  const Program bound =
      bind(lowered.plan, training.model, std::move(lowered.step), training.numbers).program();
  ASSERT_EQ(bound.size(), simulated.program.size());
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    ASSERT_EQ(bound.label(id), simulated.program.label(id)) << i;
    ASSERT_TRUE(std::ranges::equal(bound.after(id), simulated.program.after(id))) << i;
    if (bound[id].kind == WorkKind::collective) {
      ASSERT_EQ(bound.collective(bound[id]).data.size, simulated.tags[i].bytes) << bound.label(id);
    }
    if (bound[id].kind == WorkKind::transfer) {
      ASSERT_EQ(bound.transfer(bound[id]).size, simulated.tags[i].bytes) << bound.label(id);
    }
    if (bound[id].kind == WorkKind::compute) {
      ASSERT_FALSE(bound.calls(bound[id]).empty()) << bound.label(id);
    }
  }
}

class MixedPrecision : public testing::TestWithParam<MixedCase> {};

// Both round the same numbers, but the kernels sum in fp32 and the loops in fp64: now and then a
// number falls on the other side of a half. One such is 2^-11 of one of thousands of terms.
TEST_P(MixedPrecision, IsTheAlgorithm) {
  const SmallTraining training = training_of(GetParam());
  const std::vector<Race> races = find_races(bound_step(training).program(), 3);
  EXPECT_TRUE(races.empty());
  const TrainingResult result = train(training, steps);
  PlainMixed plain{training, GetParam().shape, train(training, 0).parameters};
  const double unit = GetParam().precision == Precision::fp16 ? 0x1p-11 : 0x1p-8;
  for (std::size_t s = 0; s < steps; ++s) {
    const double loss = plain.step(s);
    ASSERT_NEAR(result.losses[s], loss, unit / 8 * loss) << "step " << s;
    if (!result.scales.empty()) {
      ASSERT_EQ(result.scales[s], plain.scale()) << "step " << s;
    }
  }
  EXPECT_LE(difference(result.parameters, plain.parameters()), unit / 8);
}

TEST_P(MixedPrecision, AnyLegalOrderGivesTheSameBits) {
  const SmallTraining training = training_of(GetParam());
  EXPECT_EQ(train(training, 2, 17).parameters, train(training, 2).parameters);
}

INSTANTIATE_TEST_SUITE_P(All, MixedPrecision, testing::ValuesIn(mixed_cases()),
                         [](const auto& row) { return row.param.name; });

TEST_P(MixedPrecision, IsTheSimulatedStep) { expect_simulated(training_of(GetParam())); }

// Transformers have no such loops here; but every layout rounds what one device rounds, and sums in
// another order. Each rounding is off by 2^-11 of a number at most (2^-8 in bf16), they go up and
// down, and what they change are updates: the parameters of two layouts are apart by a small
// multiple of that of the way which the training has gone.
struct LayoutCase {
  std::string name;
  Model model;
  std::size_t ranks, micro_batch;
  Precision precision;
  std::vector<Change> changes = {};
};
void PrintTo(const LayoutCase& row, std::ostream* out) { *out << row.name; }

// clang-format off
std::vector<LayoutCase> layout_cases() {
  constexpr Model mlp = Model::mlp, gpt = Model::gpt, llama = Model::llama;
  constexpr Precision fp16 = Precision::fp16, bf16 = Precision::bf16;
  const Change full = recompute(Recompute::full), selective = recompute(Recompute::selective);
  return {
    {"gpt_fp16_dp4", gpt, 4, 2, fp16, {overlap()}},
    {"gpt_fp16_tp2_sequence", gpt, 2, 4, fp16, {sequence(), selective, in_parts()}},
    {"gpt_fp16_pp2_tied", gpt, 2, 2, fp16, {pipeline("1F1B")}},
    {"gpt_fp16_zbv", gpt, 2, 2, fp16, {pipeline("ZBVZeroBubble"), wide_gradients()}},
    {"llama_fp16_zero3_recomputing", llama, 2, 2, fp16, {zero(3), overlap(), full}},
    {"llama_fp16_zero1_in_fp32", llama, 4, 1, fp16, {zero(1), wide_gradients()}},
    {"llama_bf16_tp2_pp2_dp2_zero1", llama, 8, 1, bf16,
     {sequence(), pipeline("1F1B"), zero(1), overlap(), full}},
    {"llama_fp16_tp2_pp2_dp2_zero1", llama, 8, 1, fp16,
     {sequence(), pipeline("1F1B"), zero(1), overlap(), full}},
    {"mlp_fp16_lamb", mlp, 2, 4, fp16, {by(OptimizerKind::lamb)}},
    {"mlp_fp16_adam_clipped", mlp, 4, 2, fp16, {by(OptimizerKind::adam), clip(0.5)}},
    {"mlp_fp16_autocast_tp2_pp2", mlp, 4, 2, fp16, {autocast(), tensor(), pipeline("1F1B")}},
    {"gpt_fp16_autocast_in_parts_tp2", gpt, 2, 4, fp16,
     {autocast(), in_parts(), sequence(), selective}},
    {"gpt_fp16_autocast_pp2_tied", gpt, 2, 2, fp16, {autocast(), pipeline("1F1B"), full}},
    {"llama_bf16_autocast_zero3", llama, 2, 2, bf16, {autocast(), zero(3), overlap()}},
    {"llama_bf16_autocast_zbh1", llama, 2, 2, bf16, {autocast(), pipeline("ZBH1")}},
  };
}
// clang-format on

SmallTraining training_of(const LayoutCase& row, bool alone) {
  SmallTraining training = mixed(row.model, row.ranks, row.micro_batch, row.precision);
  for (const Change& change : row.changes) change(training.scenario);
  if (alone) {
    const Training how = training.scenario.training;
    training.scenario = {};
    training.scenario.training = how;
    training.ranks = 1;
    training.scenario.training.micro_batch_size = how.global_batch_size;
  }
  if (training.scenario.training.optimizer != OptimizerKind::momentum)
    training.numbers.learning_rate = 0.005;
  // Far from the largest numbers: whose partial sums overflow first depends on the layout.
  training.numbers.loss_scale = 1024;
  training.scenario.training.loss_scale_window = 8;
  return training;
}

class MixedLayout : public testing::TestWithParam<LayoutCase> {};

TEST_P(MixedLayout, TrainsAsOneDeviceDoes) {
  const SmallTraining training = training_of(GetParam(), false);
  EXPECT_TRUE(find_races(bound_step(training).program(), 3).empty());
  expect_simulated(training);
  const SmallTraining alone = training_of(GetParam(), true);
  const TrainingResult begin = train(alone, 0), expected = train(alone, steps);
  if (!expected.scales.empty()) {
    EXPECT_EQ(expected.scales.back(), 4096) << "doubled twice";
  }
  const TrainingResult result = train(training, steps);
  EXPECT_EQ(result.scales, expected.scales);
  const double unit = GetParam().precision == Precision::fp16 ? 0x1p-11 : 0x1p-8;
  for (std::size_t s = 0; s < steps; ++s)
    EXPECT_NEAR(result.losses[s], expected.losses[s], 4 * unit * expected.losses[s]) << s;
  EXPECT_LE(way(result.parameters, expected.parameters),
            16 * unit * way(begin.parameters, expected.parameters));
  EXPECT_LT(expected.losses.back(), 1.2 * expected.losses.front());
}

INSTANTIATE_TEST_SUITE_P(All, MixedLayout, testing::ValuesIn(layout_cases()),
                         [](const auto& row) { return row.param.name; });

// In two stages an overflow in one of them is everybody's: 4 bytes over tp, over ZeRO's shards and
// over the pipeline, in every group.
TEST(LossScaling, TellsAllThatShareAModel) {
  SmallTraining training = mixed(Model::llama, 8, 1, Precision::fp16);
  for (const Change& change : {sequence(), pipeline("1F1B"), zero(1)}) change(training.scenario);
  const BoundStep step = bound_step(training);
  std::size_t told = 0;
  for (std::size_t i = 0; i < step.program().size(); ++i) {
    const Program::Op& op = step.program()[static_cast<OpId>(i)];
    if (op.kind != WorkKind::collective || step.step.notes[i].purpose != Purpose::overflow)
      continue;
    EXPECT_EQ(step.program().collective(op).combine, Combine::max);
    EXPECT_EQ(step.program().collective(op).data.size, 4_B);
    ++told;
  }
  EXPECT_EQ(told, 12u) << "four groups each";
}

// Skipped while gradients overflow, halved each time; doubled after four good steps in a row.
TEST(LossScaling, HalvesAndDoubles) {
  const TrainingResult result = train(mixed(Model::llama, 1, 8, Precision::fp16), 16);
  const auto first = std::ranges::find_if(result.scales, [](double scale) { return scale > 0; });
  const auto skipped = static_cast<std::size_t>(first - result.scales.begin());
  ASSERT_GT(skipped, 0u) << "the first step overflows";
  ASSERT_LT(skipped, 8u);
  double scale = 0x1p+22 / static_cast<double>(1 << skipped);
  std::size_t good = 0;
  for (std::size_t s = skipped; s < result.scales.size(); ++s) {
    if (result.scales[s] > 0) {
      EXPECT_EQ(result.scales[s], scale) << s;
    }
    good = result.scales[s] > 0 ? good + 1 : 0;
    scale *= result.scales[s] == 0 ? 0.5 : good == 4 ? 2 : 1;
    good = good == 4 ? 0 : good;
  }
  // Nothing was updated meanwhile: every skipped step sees the first parameters.
  const SmallTraining training = mixed(Model::llama, 1, 8, Precision::fp16);
  EXPECT_EQ(train(training, skipped).parameters, train(training, 0).parameters);
  EXPECT_NE(train(training, skipped + 1).parameters, train(training, 0).parameters);
}

// 16 bits reach the loss that fp32 reaches, to a twentieth.
TEST(MixedPrecisionTraining, Learns) {
  const auto last = [](Precision precision, bool casts) {
    SmallTraining training = mixed(Model::mlp, 4, 8, precision);
    training.scenario.training.global_batch_size = 32;
    training.scenario.training.autocast = casts;
    training.scenario.training.loss_scale_window = 100;
    training.numbers.learning_rate = 0.1;
    return train(training, 600).losses.back();
  };
  const double exact = last(Precision::fp32, false);
  EXPECT_LT(exact, 1.0);
  EXPECT_LT(last(Precision::fp16, false), 1.05);
  EXPECT_LT(last(Precision::bf16, false), 1.05);
  EXPECT_LT(last(Precision::fp16, true), 1.05);
}

}  // namespace
}  // namespace rehearse::mixed_precision_test
