// Compressed gradients against sums written here: what travels, which kernels it costs, what is
// held.
#include "strategies/methods/gradient_compression.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/engine/cost_model.hpp"
#include "strategies/collectives/decide.hpp"
#include "strategies/layers/optimizer.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::gradient_compression_test {
namespace {

const EqualLayers model{.count = 4, .width = 256};
constexpr double memory_rate = 1e12;

/// Every kernel takes as long as its bytes.
class BytesCost final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator&) const override {
    return work.traffic / BytesPerSecond{memory_rate};
  }
};
const BytesCost cost;

Time time_of_bytes(std::int64_t bytes) {
  return Time::round(Bytes{bytes} / BytesPerSecond{memory_rate});
}
Time time_of_pieces(const std::vector<Piece>& pieces) {
  Time sum;
  for (const Piece& piece : pieces)
    sum += time_of_bytes(std::get<Compute>(piece.work).traffic.count());
  return sum;
}

Scenario scenario_with(CompressionKind method, double sparsity = 0.99) {
  Scenario scenario = model.scenario(1);
  scenario.training.precision = Precision::fp32;
  scenario.training.optimizer = OptimizerKind::momentum;
  scenario.parallelism.first_bucket_size = scenario.parallelism.bucket_size;
  scenario.compression.method = method;
  scenario.compression.sparsity = sparsity;
  scenario.collectives = {.all_reduce = "ring", .all_gather = "ring"};
  return scenario;
}

Prediction run(const Scenario& scenario, const Topology& machine) {
  return StepPredictor(machine, cost).predict(scenario, model.workload(), {}).prediction;
}

const std::int64_t n = model.parameters();

TEST(DeepGradientCompression, EveryKernelAndTheGatherAddUp) {
  for (const std::size_t ranks : {2, 4, 8})
    for (const double sparsity : {0.75, 0.99, 0.999}) {
      const Topology machine = calm_star(ranks, {1.0_GBps, 1_us});
      const Scenario plain = scenario_with(CompressionKind::none);
      const Scenario sparse = scenario_with(CompressionKind::dgc, sparsity);
      const auto copies = static_cast<std::int64_t>(ranks);
      const auto sent =
          static_cast<std::int64_t>(std::ceil((1 - sparsity) * static_cast<double>(n)));
      EXPECT_EQ(sent_of(n, sparsity), sent);
      // Norm; gradient, velocity and residual; the sample and its four passes; the choice.
      const std::int64_t sampled = n / 100;
      const Time pack = time_of_bytes(4 * n) + time_of_bytes(4 * n + 16 * n) +
                        time_of_bytes(sampled * (32 + 4)) + 4 * time_of_bytes(8 * sampled) +
                        time_of_bytes(4 * n + sent * (8 + 64));
      const Time unpack = time_of_bytes(4 * n) + time_of_bytes(copies * sent * (8 + 64));
      // SGD reads gradient and weight and writes the weight; momentum its velocity twice, too.
      const Time sgd = time_of_bytes(12 * n), momentum = time_of_bytes(20 * n);
      const Time reduce = time_of("ring", CollectiveKind::all_reduce, machine, Bytes{4 * n});
      const Time gather =
          time_of("ring", CollectiveKind::all_gather, machine, Bytes{copies * sent * 8});
      EXPECT_EQ(run(sparse, machine).step - run(plain, machine).step,
                pack + gather + unpack + sgd - reduce - momentum)
          << ranks << " ranks, " << sent << " of " << n;
    }
}

// Every rank receives the others' k pairs: (N-1) k (4 + 4) bytes.
TEST(DeepGradientCompression, VolumeIsThatOfTheSparseGather) {
  for (const std::size_t ranks : {2, 4, 8}) {
    const Topology machine = calm_star(ranks, {1.0_GBps, 1_us});
    const StepProgram whole =
        StepPredictor(machine, cost)
            .whole_program(scenario_with(CompressionKind::dgc), model.workload());
    Routing routing(machine);
    const Program expanded = expand_collectives(whole.program, routing, {.algorithm = "ring"});
    const Timeline timeline = FastSimulator(routing, cost).run(expanded);
    const auto most = std::max_element(timeline.link_bytes.begin(), timeline.link_bytes.end());
    const auto others = static_cast<std::int64_t>(ranks) - 1;
    EXPECT_EQ(most->count(), others * sent_of(n, 0.99) * 8) << "of " << ranks << " ranks";
  }
}

TEST(DeepGradientCompression, HoldsVelocityAndResidual) {
  const Topology machine = calm_star(4, {1.0_GBps, 1_us});
  const auto held = [&](const Scenario& scenario, MemoryKind kind) {
    return run(scenario, machine).roles[0].peak[static_cast<std::size_t>(kind)].count();
  };
  const Scenario sparse = scenario_with(CompressionKind::dgc);
  EXPECT_EQ(held(sparse, MemoryKind::gradients), 4 * n + 4 * n) << "gradient and residual";
  EXPECT_EQ(held(sparse, MemoryKind::optimizer), 4 * n) << "velocity";
  EXPECT_EQ(held(sparse, MemoryKind::buffers), 4 * sent_of(n, 0.99) * 8) << "of four ranks";
  Scenario without = sparse;
  without.training.optimizer = OptimizerKind::sgd;
  EXPECT_EQ(held(without, MemoryKind::optimizer), 0) << "no momentum, no velocity";
}

TEST(DeepGradientCompression, WhatIsSwitchedOffCostsNothing) {
  Compression how{.method = CompressionKind::dgc};
  const Time whole = time_of_pieces(dgc_pack(how, true, n, 4));
  how.local_clipping = false;
  EXPECT_EQ(whole - time_of_pieces(dgc_pack(how, true, n, 4)), time_of_bytes(4 * n));
  how.local_clipping = true;
  how.factor_masking = false;
  const std::int64_t sent = sent_of(n, how.sparsity);
  EXPECT_EQ(whole - time_of_pieces(dgc_pack(how, true, n, 4)),
            time_of_bytes(4 * n + sent * (8 + 64)) - time_of_bytes(4 * n + sent * (8 + 32)));
}

// Lin et al. 2018, section 3.3: 75, 93.75, 98.4375, 99.6 and then 99.9 %.
TEST(DeepGradientCompression, WarmsUpAsPublished) {
  const std::vector<double> list = warmup_sparsities({.sparsity = 0.999, .warmup_epochs = 4});
  const std::vector<double> published{0.75, 0.9375, 0.984375, 0.996};
  ASSERT_EQ(list.size(), published.size());
  for (std::size_t e = 0; e < list.size(); ++e) EXPECT_NEAR(list[e], published[e], 1e-3);
}

TEST(QuantisedGradients, TwoCastsAndAShorterAllReduce) {
  for (const auto& [method, wire] :
       {std::pair{CompressionKind::fp16, 2}, std::pair{CompressionKind::int8, 1}}) {
    const Topology machine = calm_star(4, {1.0_GBps, 1_us});
    const Time longer = run(scenario_with(CompressionKind::none), machine).step;
    const Time shorter = run(scenario_with(method), machine).step;
    const auto reduce = [&](std::int64_t bytes) {
      return time_of("ring", CollectiveKind::all_reduce, machine, Bytes{bytes});
    };
    // Codes need one scale: every gradient is read once more, and 4 bytes go round.
    const bool agrees = method == CompressionKind::int8;
    const Time agreement = agrees ? time_of_bytes(4 * n) + reduce(4) : Time{};
    EXPECT_EQ(longer - shorter,
              reduce(4 * n) - reduce(wire * n) - 2 * time_of_bytes((4 + wire) * n) - agreement)
        << wire << " bytes a gradient";
  }
}

// What is compressed beside the backward pass leaves when its bucket is full.
TEST(QuantisedGradients, OverlapAsOthersDo) {
  const Topology machine = calm_star(4, {1.0_GBps, 1_us});
  for (const CompressionKind method : {CompressionKind::dgc, CompressionKind::int8}) {
    Scenario scenario = scenario_with(method);
    scenario.parallelism.first_bucket_size = scenario.parallelism.bucket_size =
        Bytes{4 * model.width * model.width};
    const Time after = run(scenario, machine).step;
    scenario.parallelism.overlap_grad_reduce = true;
    EXPECT_LT(run(scenario, machine).step, after);
  }
}

}  // namespace
}  // namespace rehearse::gradient_compression_test
