// Loss scaling, autocast and fusion against the bytes and launches that they add or save.
#include <gtest/gtest.h>

#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/scenario_machine.hpp"
#include "sim/workload/model_presets.hpp"
#include "strategies/layers/autocast.hpp"
#include "strategies/layers/fusion.hpp"
#include "strategies/layers/optimizer.hpp"
#include "strategies/methods/loss_scaling.hpp"
#include "strategies/predict/step_average.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"
#include "tests/support/training_jobs.hpp"

namespace rehearse::mixed_precision_test {
namespace {

constexpr double memory_rate = 1e12;
constexpr Time launch = 5_us;

/// A launch for every kernel, and its bytes.
class LaunchAndBytes final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator& device) const override {
    if (work.flops == Flops{0} && work.traffic == Bytes{0}) return Seconds{0};
    return work.traffic / BytesPerSecond{memory_rate} + device.launch_overhead.seconds();
  }
};
const LaunchAndBytes cost;

Time of_bytes(std::int64_t bytes) {
  return Time::round(Bytes{bytes} / BytesPerSecond{memory_rate} + launch.seconds());
}
Time total(const std::vector<Piece>& pieces) {
  Time sum;
  for (const Piece& piece : pieces)
    if (const auto* work = std::get_if<Compute>(&piece.work))
      sum += of_bytes(work->traffic.count());
  return sum;
}

Piece add_of(std::int64_t bytes, bool is_kept = false) {
  return {.name = "add",
          .work = Compute{.flops = Flops{1}, .traffic = Bytes{3 * bytes}},
          .elementwise = Elementwise::whole,
          .result_is_kept = is_kept,
          .result = Bytes{bytes}};
}

// d = a + b + c: two kernels read four tensors and write two, one reads three and writes one.
TEST(Fusion, ThreeTensorsInTwoKernelsOrInOne) {
  const std::int64_t bytes = 40'000'000;
  const std::vector<Piece> two{add_of(bytes), add_of(bytes)};
  const std::vector<Piece> one = fused(two);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].name, "add+add");
  EXPECT_EQ(std::get<Compute>(one[0].work).traffic, Bytes{4 * bytes});
  EXPECT_EQ(total(two), 2 * launch + 6 * (of_bytes(bytes) - launch));
  EXPECT_EQ(total(one), launch + 4 * (of_bytes(bytes) - launch));
  // What somebody reads later must still be written.
  const std::vector<Piece> kept = fused({add_of(bytes, true), add_of(bytes)});
  EXPECT_EQ(std::get<Compute>(kept[0].work).traffic, Bytes{5 * bytes});
}

TEST(Fusion, StopsWhereKernelsAreNotElementWise) {
  Piece product = add_of(8), norm = add_of(8), weights = add_of(8);
  product.elementwise = Elementwise::no;
  norm.elementwise = Elementwise::ends;
  weights.of_weights = true;
  EXPECT_EQ(fused({add_of(8), product, add_of(8)}).size(), 3u);
  EXPECT_EQ(fused({norm, add_of(8), add_of(8)}).size(), 1u) << "a norm takes in what follows it";
  EXPECT_EQ(fused({add_of(8), norm}).size(), 2u) << "but needs all of its own input first";
  EXPECT_EQ(fused({add_of(8), weights}).size(), 2u) << "zero-bubble schedules part these";
}

TEST(Fusion, WhoDoesNotWaitForAnExchangeStaysSo) {
  const Piece exchange{.name = "x", .work = Exchange{}, .beside = 2};
  const std::vector<Piece> inside = fused({exchange, add_of(8), add_of(8), add_of(8)});
  ASSERT_EQ(inside.size(), 3u);
  EXPECT_EQ(inside[0].beside, 1) << "two became one";
  EXPECT_EQ(inside[1].name, "add+add");
}

// ResNet-50's forward pass: 53 batch norms take in the ReLU behind them, or the addition and its.
TEST(Fusion, ResNet50) {
  const Workload model = preset("resnet-50");
  const PieceTable plain(model, sharding_of(model, {}, {.micro_batch_size = 4}));
  std::size_t before = 0, after = 0, relus = 0, adds = 0;
  for (std::size_t l = 0; l < plain.size(); ++l) {
    before += plain[l].forward.size();
    after += fused(plain[l].forward).size();
    for (const Piece& piece : plain[l].forward) {
      relus += piece.name == "relu";
      adds += piece.name == "add";
    }
  }
  EXPECT_EQ(relus, 49u);
  EXPECT_EQ(adds, 16u);
  EXPECT_EQ(before - after, relus + adds) << "each is one launch less";
}

// The same step with fusion is shorter by the launches and bytes that its pieces save.
TEST(Fusion, SavesExactlyThatInAStep) {
  const Workload model = preset("resnet-50");
  Scenario scenario;
  scenario.training.micro_batch_size = 4;
  const Topology machine = free_star(2);
  StepPredictor predictor(machine, cost);
  const Time plain = predictor.predict(scenario, model, {}).prediction.step;
  scenario.training.fusion = Fusion::elementwise;
  const Time less = predictor.predict(scenario, model, {}).prediction.step;
  const PieceTable pieces(model, sharding_of(model, scenario.parallelism, scenario.training));
  Time saved;
  for (std::size_t l = 0; l < pieces.size(); ++l)
    for (const auto* list : {&pieces[l].forward, &pieces[l].backward})
      saved += total(*list) - total(fused(*list));
  EXPECT_EQ(plain - less, saved);
  EXPECT_GT(saved, 65 * launch);
}

// A graph's node costs 1.5 us where a launch costs 5.
TEST(CudaGraph, ReplacesLaunches) {
  const EqualLayers model{.count = 3, .width = 64};
  Scenario scenario = model.scenario(2);
  const Topology machine = free_star(1);
  const StepPredictor::Answer plain =
      StepPredictor(machine, cost).predict(scenario, model.workload(), {});
  scenario.training.cuda_graph = true;
  const Topology as_graph = machine_for(scenario, machine);
  const Time step =
      StepPredictor(as_graph, cost).predict(scenario, model.workload(), {}).prediction.step;
  const auto kernels = static_cast<std::int64_t>(plain.step.program.size());
  EXPECT_EQ(plain.prediction.step - step, kernels * (launch - 1500_ns)) << kernels << " kernels";
}

// Two bytes read and written for each gradient, and a launch; before it one number multiplied.
TEST(LossScaling, ChecksEveryGradient) {
  const EqualLayers model{.count = 4, .width = 128};
  const Topology machine = free_star(4);
  Scenario scenario = model.scenario(3);
  scenario.training.precision = Precision::fp16;
  StepPredictor predictor(machine, cost);
  const Time plain = predictor.predict(scenario, model.workload(), {}).prediction.step;
  scenario.training.loss_scaling = LossScaling::dynamic;
  const Time scaled = predictor.predict(scenario, model.workload(), {}).prediction.step;
  EXPECT_EQ(scaled - plain, 3 * of_bytes(8) + of_bytes(4 * model.parameters()))
      << "of three micro-batches, and of all gradients";
}

// With tensor parallelism ranks have different gradients: 4 bytes go round.
TEST(LossScaling, TellsTheOthers) {
  const TrainingJob job{
      .name = {}, .machine = "dgx-a100", .model = shortened("gpt2", 2), .scenario = {}};
  Scenario scenario;
  scenario.parallelism.tensor = 4;
  scenario.training = {.global_batch_size = 2, .seq_length = 128, .precision = Precision::fp16};
  scenario.training.loss_scaling = LossScaling::dynamic;
  const Topology machine = job.topology();
  for (const std::size_t zero : {0, 1}) {
    scenario.parallelism.zero_stage = zero;
    const StepPredictor::Answer answer =
        StepPredictor(machine, cost).predict(scenario, job.model, {});
    std::size_t told = 0;
    for (const OpTag& tag : answer.step.tags)
      told += tag.communicates && tag.phase == Phase::optimizer && tag.bytes == Bytes{4};
    EXPECT_EQ(told, 1 + zero) << "over tp, and over the ranks among which ZeRO cuts";
  }
}

// Stages have different gradients, too. The first one's backward pass ends last: behind it its own
// check, 4 bytes between the two, and the optimizer.
TEST(LossScaling, TellsTheOtherStages) {
  const EqualLayers model{.count = 4, .width = 128};
  const Topology machine = calm_star(2, {1.0_GBps, 1_us});
  Scenario scenario = model.scenario(1);
  scenario.parallelism.pipeline = 2;
  scenario.training.precision = Precision::fp16;
  StepPredictor predictor(machine, cost);
  const Time plain = predictor.predict(scenario, model.workload(), {}).prediction.step;
  scenario.training.loss_scaling = LossScaling::dynamic;
  const Time scaled = predictor.predict(scenario, model.workload(), {}).prediction.step;
  const Time told = time_of("ring", CollectiveKind::all_reduce, machine, Bytes{4});
  EXPECT_GT(told, 2_us);
  const std::int64_t first = model.width + (model.parameters() - model.width) / 2;
  EXPECT_EQ(scaled - plain, of_bytes(8) + of_bytes(4 * first) + told);
}

// N good steps, then one without its optimizer.
TEST(LossScaling, SkippedStepsCostTheirTime) {
  const EqualLayers model{.count = 4, .width = 128};
  const Topology machine = free_star(4);
  Scenario scenario = model.scenario(1);
  scenario.training.precision = Precision::fp16;
  scenario.training.loss_scaling = LossScaling::dynamic;
  scenario.training.loss_scale_window = 4;
  StepPredictor predictor(machine, cost);
  const Time step = predictor.predict(scenario, model.workload(), {}).prediction.step;
  Time update;
  for (const Piece& piece : optimizer_pieces(scenario.training, model.parameters()))
    update += of_bytes(std::get<Compute>(piece.work).traffic.count());
  EXPECT_EQ(predictor.quick(scenario, model.workload(), Update::skipped).step, step - update);
  const auto average = average_step(scenario, model.workload(), step, predictor);
  ASSERT_TRUE(average);
  EXPECT_NEAR(static_cast<double>(average->step.ps()),
              static_cast<double>(step.ps()) + static_cast<double>((step - update).ps()) / 4, 1);
}

// Each weight is cast once (4 + 2 bytes), its gradient added in fp32 (2 + 4 + 4 instead of 8 - 2).
TEST(Autocast, CastsOfAnMlp) {
  const EqualLayers model{.count = 4, .width = 128};
  const Topology machine = free_star(1);
  Scenario scenario = model.scenario(1);
  scenario.training.precision = Precision::fp16;
  scenario.training.gradients_in_fp32 = true;
  StepPredictor predictor(machine, cost);
  const StepPredictor::Answer plain = predictor.predict(scenario, model.workload(), {});
  scenario.training.autocast = true;
  const StepPredictor::Answer cast = predictor.predict(scenario, model.workload(), {});
  const auto layers = static_cast<std::int64_t>(model.count) + 1;  // with the free one
  EXPECT_EQ(cast.step.program.size(), plain.step.program.size() + 2 * 5)
      << "two casts for each weight";
  // Adam: no 16-bit weight to write from the master copy, which is the weight itself.
  const std::int64_t n = model.parameters();
  const Time updates = of_bytes(n * (4 + 2 * 12 + 2)) - of_bytes(n * (4 + 2 * 8 + 8));
  const std::int64_t moved = n * (6 + 10 - 6);
  EXPECT_NEAR(
      static_cast<double>((cast.prediction.step - plain.prediction.step).ps()),
      static_cast<double>((2 * layers * launch + (of_bytes(moved) - launch) - updates).ps()),
      4.0 * static_cast<double>(layers))
      << "to the rounding of each kernel";
  const auto held = [](const Prediction& told, MemoryKind kind) {
    return told.roles[0].peak[static_cast<std::size_t>(kind)].count();
  };
  EXPECT_EQ(held(cast.prediction, MemoryKind::parameters), 4 * n);
  EXPECT_EQ(held(cast.prediction, MemoryKind::optimizer), 8 * n) << "no master copy beside them";
  EXPECT_EQ(held(cast.prediction, MemoryKind::buffers), 2 * n) << "their 16-bit copies";
  EXPECT_EQ(held(plain.prediction, MemoryKind::parameters), 2 * n);
  EXPECT_EQ(held(plain.prediction, MemoryKind::optimizer), 12 * n) << "with the master copy";
}

TEST(Autocast, Lists) {
  const Workload model = shortened("gpt2", 1);
  const PieceTable pieces(
      model, sharding_of(model, {}, {.precision = Precision::fp16, .flash_attention = false}));
  std::size_t white = 0, black = 0;
  for (const Piece& piece : pieces[1].forward) {
    white += list_of(piece) == OpList::white;
    black += list_of(piece) == OpList::black;
  }
  EXPECT_EQ(white, 6u) << "qkv, scores, context, out, up, down";
  EXPECT_EQ(black, 3u) << "two norms and a softmax";
  const LayerPieces cast = autocast_layer(pieces[1]);
  EXPECT_EQ(cast.forward.size(), pieces[1].forward.size() + 4 + 2 * 3)
      << "four weights, and both ways round each norm and the softmax";
}

}  // namespace
}  // namespace rehearse::mixed_precision_test
