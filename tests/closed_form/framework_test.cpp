// What frameworks add to a step: launches of the host, clocks under power, kernels that are not
// fused; each against its formula, and the same in kernels, blocks and the quick way.
#include "sim/scenario/framework.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "sim/workload/model_presets.hpp"
#include "strategies/layers/framework_kernels.hpp"
#include "strategies/layers/winograd.hpp"
#include "strategies/lowering/step_pricing.hpp"
#include "strategies/plan/step_plan.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"
#include "tests/support/training_jobs.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::framework_test {
namespace {

std::int64_t kernels_of(const Tape& tape) { return static_cast<std::int64_t>(tape.steps.size()); }

// n kernels of 10 us, launched in 10 us each: both take n · 10 us, so together 2^¼ times that.
// Launched in a thousandth they do not wait; launched in a thousand times as long, for nothing
// else.
TEST(HostLaunches, TakeTheFourthRootOfTheSumOfFourthPowers) {
  const EqualLayers model{.count = 3, .width = 64};
  const Topology machine = free_star(1);
  const Equal cost{10_us};
  Scenario scenario = model.scenario(2);
  const StepPlan plan =
      plan_step(scenario, model.workload(), 1,
                machine.accelerators.empty() ? Accelerator{} : machine.accelerators.front(), cost);
  const std::int64_t kernels =
      2 * (kernels_of(plan.works[0].forward) + kernels_of(plan.works[0].backward));
  StepPredictor predictor(machine, cost);
  const Time without = predictor.predict(scenario, model.workload(), {}).prediction.step;
  const auto with = [&](Time launch) {
    scenario.training.launch_time = launch;
    return predictor.predict(scenario, model.workload(), {}).prediction.step - without;
  };
  const Time each = Time::round(Seconds{10e-6 * (std::sqrt(std::sqrt(2.0)) - 1)});
  EXPECT_NEAR(static_cast<double>(with(10_us).ps()), static_cast<double>((kernels * each).ps()),
              static_cast<double>(kernels));
  EXPECT_EQ(with(10_ns), Time{});
  EXPECT_NEAR(with(10000_us).seconds().count(), static_cast<double>(kernels) * (10e-3 - 10e-6),
              1e-6);
  // A host that waits for each kernel adds its launches to them.
  scenario.training.launch_blocking = true;
  EXPECT_EQ(with(7_us), kernels * 7_us);
}

// A pipeline, tensor and data ranks of a GPT with a framework's kernels: the quick way and blocks
// take as long as all kernels.
TEST(Frameworks, TakeTheSameInKernelsBlocksAndQuickly) {
  for (const std::size_t framework : {1, 3, 6, 10}) {
    const TrainingJob job{
        .name = {}, .machine = "dgx-a100", .model = shortened("gpt2", 4), .scenario = {}};
    Scenario scenario;
    scenario.parallelism.tensor = 2;
    scenario.parallelism.pipeline = 2;
    scenario.parallelism.recompute = Recompute::full;
    scenario.training = {.global_batch_size = 32, .seq_length = 128};
    scenario.training.framework = framework;
    const Topology machine = job.topology();
    const ShapedRoofline cost;
    StepPredictor predictor(machine, cost);
    const Time kernels = predictor.predict(scenario, job.model, {}).prediction.step;
    const Time blocks =
        predictor.predict(scenario, job.model, {.grain = Grain::blocks}).prediction.step;
    EXPECT_EQ(kernels, blocks) << framework_words[framework];
    EXPECT_EQ(kernels, predictor.quick(scenario, job.model).step) << framework_words[framework];
    EXPECT_EQ(kernels, predictor.predict(scenario, job.model, {.fold = false}).prediction.step);
    scenario.training.framework = 0;
    EXPECT_GT(kernels, predictor.quick(scenario, job.model).step) << framework_words[framework];
  }
}

// At a share of 1 clocks stay up. Below U products take (U / share)^¼ as long, so a share lowered
// sixteen times lengthens what they take two times.
TEST(Clocks, GoDownWithTheFourthRootOfTheShare) {
  Topology machine =
      TrainingJob{.name = {}, .machine = "dgx-a100", .model = {}, .scenario = {}}.topology();
  Scenario scenario;
  scenario.training = {.seq_length = 1024};
  const Workload model = shortened("gpt2", 2);
  const ShapedRoofline cost;
  const auto step = [&](double share) {
    for (Accelerator& device : machine.accelerators) device.sustained_share = share;
    return StepPredictor(machine, cost).quick(scenario, model).step.seconds().count();
  };
  const double full = step(1), low = step(0.016), lowest = step(0.001);
  EXPECT_LT(full, low);
  // What clocks touch is m: full + m (s - 1) and full + m (2 s - 1).
  const double other = 2 * low - lowest;  // full - m
  EXPECT_GT(other, 0);
  EXPECT_LT(other, full);
}

// Sweeps over memory that reach a share s take 1/s as long beyond their launch, so from ½ to ¼ a
// step gets longer by twice as much as from 1 to ½; those of networks of images reach all of it.
TEST(Sweeps, TakeLongerByTheirShare) {
  Topology machine =
      TrainingJob{.name = {}, .machine = "dgx-a100", .model = {}, .scenario = {}}.topology();
  const ShapedRoofline cost;
  const auto step = [&](const char* model, double forward, double backward) {
    Scenario scenario;
    if (std::string_view{model} == "gpt2") scenario.training.seq_length = 1024;
    for (Accelerator& device : machine.accelerators) {
      device.sustained_share = 1;
      device.elementwise_share = forward;
      device.elementwise_grad_share = backward;
    }
    return StepPredictor(machine, cost).quick(scenario, preset(model)).step.seconds().count();
  };
  const double full = step("gpt2", 1, 1);
  const double forward = step("gpt2", 0.5, 1) - full, backward = step("gpt2", 1, 0.5) - full;
  EXPECT_GT(forward, 0.02 * full);
  EXPECT_GT(backward, 0.02 * full);
  EXPECT_NEAR(step("gpt2", 0.25, 1) - full, 3 * forward, 1e-9);
  EXPECT_NEAR(step("gpt2", 1, 0.25) - full, 3 * backward, 1e-9);
  EXPECT_NEAR(step("gpt2", 0.5, 0.5) - full, forward + backward, 1e-9);
  EXPECT_EQ(step("resnet-50", 0.5, 0.5), step("resnet-50", 1, 1));
}

// Of exchanges with nothing beside them a share s takes 1/s as long; with overlap nothing changes.
TEST(Exchanges, TakeLongerByTheirShare) {
  const Topology machine =
      TrainingJob{.name = {}, .machine = "dgx-a100", .model = {}, .scenario = {}}.topology();
  const ShapedRoofline cost;
  const Workload model = shortened("gpt2", 2);
  for (const std::size_t stage : {0, 1}) {
    const auto step = [&](double share, bool overlap) {
      Scenario scenario;
      scenario.parallelism.zero_stage = stage;
      scenario.parallelism.overlap_grad_reduce = overlap;
      scenario.parallelism.overlap_param_gather = overlap && stage > 0;
      scenario.training.global_batch_size = 64;
      scenario.training.seq_length = 128;
      scenario.training.exchange_share = share;
      const Prediction told = StepPredictor(machine, cost).quick(scenario, model);
      return std::pair{told.step.seconds().count(),
                       told.mean.exposed[static_cast<std::size_t>(Dimension::data)]};
    };
    const auto [whole, exposed] = step(1, false);
    EXPECT_NEAR(step(0.5, false).first - whole, exposed.seconds().count(), 0.05 * whole);
    EXPECT_NEAR(step(0.25, false).first - whole, 3 * (step(0.5, false).first - whole), 1e-9);
    EXPECT_EQ(step(0.25, true).first, step(1, true).first);
  }
}

// An RMS norm of plain modules moves 36 bytes a number where a fused one moves 4, in 8 kernels.
TEST(FrameworkKernels, AChainStandsForAFusedNorm) {
  const std::int64_t numbers = 1000;
  LayerPieces layer;
  layer.forward.push_back({.name = "attention.norm",
                           .work = Compute{.flops = Flops{5}, .traffic = Bytes{4 * numbers}},
                           .result = Bytes{2 * numbers}});
  const Framework* plain = find_framework("aa-scaling-fa2");
  const Framework* fused = find_framework("aa-scaling-fa2-rms");
  ASSERT_TRUE(plain && fused);
  const LayerPieces chain = framework_layer(layer, *plain, Accelerator{}, {Norm::rms});
  EXPECT_EQ(std::get<Compute>(chain.forward[0].work).traffic, Bytes{36 * numbers});
  EXPECT_EQ(chain.forward[0].launches, 8);
  EXPECT_EQ(framework_layer(layer, *fused, Accelerator{}, {Norm::rms}), layer);
}

// Bias, dropout and the sum of a residual are a kernel each where none is fused: rw for each of the
// first two, and neither where a model has none.
TEST(FrameworkKernels, AResidualIsAsManyKernelsAsItsModelNeeds) {
  LayerPieces layer;
  layer.forward.push_back({.name = "mlp.residual",
                           .work = Compute{.flops = Flops{2}, .traffic = Bytes{6000}},
                           .result = Bytes{2000}});
  const Framework& plain = *find_framework("llm-foundry");
  const auto kernels = [&](bool bias, bool dropout) {
    const LayerPieces other = framework_layer(layer, plain, {}, {Norm::layer, bias, dropout});
    return std::pair{std::get<Compute>(other.forward[0].work).traffic, other.forward[0].launches};
  };
  EXPECT_EQ(kernels(false, false), (std::pair{Bytes{6000}, std::uint8_t{1}}));
  EXPECT_EQ(kernels(true, false), (std::pair{Bytes{10000}, std::uint8_t{2}}));
  EXPECT_EQ(kernels(true, true), (std::pair{Bytes{14000}, std::uint8_t{3}}));
}

/// Two stages of two tensor ranks, as planned.
StepPlan two_by_two(const char* framework, bool async_sums = true) {
  static const ShapedRoofline cost;
  static const Topology machine =
      TrainingJob{.name = {}, .machine = "dgx-a100", .model = {}, .scenario = {}}.topology();
  Scenario scenario;
  scenario.parallelism.tensor = scenario.parallelism.pipeline = 2;
  scenario.parallelism.async_tensor_all_reduce = async_sums;
  scenario.training = {.global_batch_size = 8, .seq_length = 128};
  scenario.training.framework =
      static_cast<std::size_t>(find_framework(framework) - frameworks().data());
  return plan_step(scenario, shortened("gpt2", 4), machine.rank_count(),
                   machine.accelerators.front(), cost);
}

// Each of two tensor ranks hands half of the activations on, and both gather them behind it.
TEST(Messages, AreScatteredAndGathered) {
  const StepPlan whole = two_by_two("nemo"), parts = two_by_two("megatron-lm");
  EXPECT_EQ(2 * parts.work(0).output, whole.work(0).output);
  EXPECT_EQ(2 * parts.work(1).input, whole.work(1).input);
  const auto first = [](const StepPlan& plan, const Tape& tape) {
    return plan.pieces[tape.steps.front().piece].work;
  };
  const std::variant<Compute, Exchange> gather =
      Exchange{Dimension::tensor, CollectiveKind::all_gather, whole.work(0).output};
  EXPECT_EQ(first(parts, parts.work(1).forward), gather);
  EXPECT_EQ(first(parts, parts.work(0).backward), gather);
  EXPECT_NE(first(parts, parts.work(0).forward), gather);
  EXPECT_NE(first(parts, parts.work(1).backward), gather);
}

// Sums of tensor ranks run beside products of the backward pass, or are waited for.
TEST(Messages, SumsOfTensorRanksMayBeWaitedFor) {
  const auto beside = [](const StepPlan& plan) {
    std::size_t count = 0;
    for (const TapeStep& step : plan.work(0).backward.steps)
      if (std::holds_alternative<Exchange>(plan.pieces[step.piece].work)) count += step.beside;
    return count;
  };
  EXPECT_GT(beside(two_by_two("megatron-lm")), 0u);
  EXPECT_EQ(beside(two_by_two("megatron-lm", false)), 0u);
  EXPECT_EQ(beside(two_by_two("megatron-deepspeed")), 0u);
}

// ZeRO-1 that sums whole gradients in fp32 takes an all-reduce of twice the bytes of bf16 in place
// of a reduce-scatter.
TEST(Exchanges, OfWholeGradientsAreAllReducesInFp32) {
  const Topology machine =
      TrainingJob{.name = {}, .machine = "dgx-a100", .model = {}, .scenario = {}}.topology();
  const ShapedRoofline cost;
  Scenario scenario;
  scenario.parallelism.zero_stage = 1;
  scenario.training = {.global_batch_size = 8, .seq_length = 128};
  scenario.training.framework =
      static_cast<std::size_t>(find_framework("aa-scaling-fa2") - frameworks().data());
  StepPlan plan = plan_step(scenario, shortened("gpt2", 2), machine.rank_count(),
                            machine.accelerators.front(), cost);
  const std::uint32_t scatter =
      plan.uses.of({Family::shards, CollectiveKind::reduce_scatter, 1_MiB});
  const std::uint32_t gather = plan.uses.of({Family::shards, CollectiveKind::all_gather, 1_MiB});
  Routing routing{machine};
  FastSimulator engine{routing, cost};
  FamilyPool pool{routing, engine};
  StepNetwork network{plan.placement, scenario.collectives, pool};
  const auto time = [&](CollectiveKind kind, Bytes size) {
    return network.use({Family::shards, kind, size}).entries.front().cost.time;
  };
  charge_framework_overhead(plan, network);
  EXPECT_EQ(plan.added_to(scatter),
            time(CollectiveKind::all_reduce, 2_MiB) - time(CollectiveKind::reduce_scatter, 1_MiB));
  EXPECT_EQ(plan.added_to(gather), Time{});
}

// Older flash attention takes as many more operations as it reaches less of the peak.
TEST(FrameworkKernels, OlderFlashAttentionIsSlower) {
  Accelerator device;
  device.fused_efficiency = 0.6;
  device.flash_2_efficiency = 0.4;
  device.flash_1_efficiency = 0.2;
  LayerPieces layer;
  layer.forward.push_back({.name = "attention.flash", .work = Compute{.flops = Flops{1e9}}});
  const auto flops = [&](const char* name) {
    const LayerPieces other = framework_layer(layer, *find_framework(name), device, {Norm::rms});
    return std::get<Compute>(other.forward[0].work).flops.count();
  };
  EXPECT_NEAR(flops("aa-scaling-fa1"), 3e9, 1);
  EXPECT_NEAR(flops("aa-scaling-fa2"), 1.5e9, 1);
  EXPECT_NEAR(flops("nemo"), 1e9, 1);
}

// 3 x 3 convolutions of stride 1 in fp32 have a share of their products left; tensor cores, other
// windows and strides do not.
TEST(Winograd, LeavesAShareOfTheProducts) {
  Accelerator device = load_cluster("dgx-1").accelerators.front();
  device.winograd_share = 0.5;
  const auto piece = [](const char* name, Precision math) {
    return Piece{name, Compute{.flops = Flops{36e9}, .gemm = {64, 64, 576}, .math = math}};
  };
  LayerPieces layer;
  layer.forward = {piece("conv3x3", Precision::fp32), piece("conv3x3/2", Precision::fp32),
                   piece("conv1x1", Precision::fp32), piece("conv3x3", Precision::fp16)};
  layer.backward = {piece("conv3x3.dgrad", Precision::fp32)};
  layer = winograd_layer(std::move(layer), device);
  const auto depth = [](const Piece& each) { return std::get<Compute>(each.work).gemm.k; };
  EXPECT_EQ(depth(layer.forward[0]), 288);
  EXPECT_EQ(depth(layer.forward[1]), 576);
  EXPECT_EQ(depth(layer.forward[2]), 576);
  EXPECT_EQ(depth(layer.forward[3]), 576);
  EXPECT_EQ(depth(layer.backward[0]), 288);
}

}  // namespace
}  // namespace rehearse::framework_test
