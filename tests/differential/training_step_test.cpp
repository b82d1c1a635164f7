// Whole training steps four ways: every collective expanded into its transfers, in both engines;
// predicted; and predicted with collectives remembered as flows, as those of large steps are.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sim/program/verify.hpp"
#include "strategies/predict/predictor.hpp"
#include "tests/differential/engines.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::training_step_test {
namespace {

/// The bar is half a percent; what small steps leave is the rounding of the two engines.
constexpr double prediction_agrees_within = 1e-3;
/// A remembered collective is an even flow or a few equal bursts. So it may be off where it meets
/// other traffic on its links: by 1.1 % in the worst of these, which last a millisecond.
constexpr double flows_agree_within = 1.2e-2;

struct Case {
  std::string name;
  std::function<Topology()> machine;
  std::size_t tp = 1, pp = 1, microbatches = 1, zero = 0;
  std::function<void(Scenario&)> more = [](Scenario&) {};
  std::int64_t experts = 0;
};

Workload gpt(std::int64_t layers, std::int64_t experts) {
  return transformer_workload("small", "gpt",
                              {.hidden = 1024,
                               .layers = layers,
                               .heads = 16,
                               .kv_heads = 16,
                               .head_size = 64,
                               .ffn = 4096,
                               .vocabulary = 1024,
                               .positions = 512,
                               .experts = experts,
                               .experts_per_token = experts > 0 ? 2 : 0});
}

void overlapped(Scenario& s) {
  s.parallelism.overlap_grad_reduce = true;
  s.parallelism.overlap_param_gather = s.parallelism.zero_stage > 0;
  s.parallelism.bucket_size = 4_MiB;
}

std::function<Topology()> catalog_machine(std::string name, ClusterOverrides size = {.nodes = 1}) {
  return [=] { return load_cluster(name, size); };
}

/// The ways of training beyond parallelism.
std::vector<Case> methods() {
  return {
      {"imperfect ranks", catalog_machine("dgx-h100"), 2, 2, 2, 0,
       [](Scenario& s) {
         s.imperfection = {.seed = 5,
                           .slow_ranks = {3},
                           .slow_rank_factor = 1.3,
                           .kernel_jitter = 0.1,
                           .pause_every = 500_us,
                           .pause_length = 70_us};
       }},
      {"deep gradient compression", catalog_machine("dgx-h100"), 1, 1, 1, 0,
       [](Scenario& s) {
         overlapped(s);
         s.training.optimizer = OptimizerKind::momentum;
         s.compression.method = CompressionKind::dgc;
       }},
      {"mixed precision", catalog_machine("dgx-a100"), 2, 1, 2, 1,
       [](Scenario& s) {
         s.training.precision = Precision::fp16;
         s.training.loss_scaling = LossScaling::dynamic;
         s.training.autocast = true;
         s.training.fusion = Fusion::elementwise;
       }},
  };
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"data parallel", catalog_machine("dgx-h100"), 1, 1, 2},
      {"data parallel, overlapped", catalog_machine("dgx-h100"), 1, 1, 1, 0, overlapped},
      {"data parallel over two nodes", catalog_machine("dgx-h100", {2, 4}), 1, 1, 1},
      {"tensor parallel", catalog_machine("dgx-h100"), 8, 1, 2},
      {"sequence parallel", catalog_machine("dgx-h100"), 4, 1, 1, 0,
       [](Scenario& s) { s.parallelism.sequence_parallel = true; }},
      {"pipeline", catalog_machine("dgx-h100"), 1, 4, 4},
      {"interleaved", catalog_machine("dgx-a100"), 2, 2, 4, 0,
       [](Scenario& s) {
         s.parallelism.schedule = "Interleaved1F1B";
         s.parallelism.virtual_pipeline = 2;
       }},
      {"zero bubble", catalog_machine("dgx-h100"), 2, 4, 4, 0,
       [](Scenario& s) { s.parallelism.schedule = "ZBH1"; }},
      {"all three", catalog_machine("dgx-h100", {2, 8}), 2, 2, 2, 0, overlapped},
      {"ZeRO 1", catalog_machine("dgx-a100"), 1, 1, 1, 1},
      {"ZeRO 2", catalog_machine("dgx-h100"), 2, 1, 2, 2, overlapped},
      {"ZeRO 3", catalog_machine("dgx-h100"), 1, 1, 1, 3},
      {"ZeRO 3, overlapped", catalog_machine("dgx-h100"), 1, 1, 1, 3, overlapped},
      {"ZeRO 3, hybrid", catalog_machine("dgx-h100", {2, 8}), 1, 1, 1, 3,
       [](Scenario& s) { s.parallelism.zero_shard_ranks = 8; }},
      {"PCIe", catalog_machine("l40s-8"), 2, 2, 2, 0, overlapped},
      {"cube mesh", catalog_machine("dgx-1"), 2, 1, 1, 0, overlapped},
      {"context parallel", catalog_machine("dgx-h100"), 1, 1, 1, 0,
       [](Scenario& s) { s.parallelism.context = 4; }},
      {"ring attention", catalog_machine("dgx-h100"), 1, 1, 2, 0,
       [](Scenario& s) {
         s.parallelism.context = 8;
         s.parallelism.context_exchange = ContextExchange::ring;
       }},
      {"expert parallel", catalog_machine("dgx-h100"), 1, 1, 1, 0,
       [](Scenario& s) { s.parallelism.expert = 4; }, 8},
      {"experts, tensors and a pipeline", catalog_machine("dgx-h100", {2, 8}), 2, 2, 2, 1,
       [](Scenario& s) {
         s.parallelism.sequence_parallel = true;
         s.parallelism.expert = 2;
         s.parallelism.broadcast_parameters = true;
       },
       8},
  };
  for (Case& method : methods()) all.push_back(std::move(method));
  return all;
}

class TrainingStep : public testing::TestWithParam<std::size_t> {
 protected:
  const Case case_ = cases()[GetParam()];
  const Topology machine_ = case_.machine();
  const Workload model_ = gpt(4, case_.experts);
  const Roofline cost_{};
  StepPredictor predictor_{machine_, cost_};
  Routing routing_{machine_};

  Scenario scenario() const {
    Scenario scenario;
    scenario.parallelism.tensor = case_.tp;
    scenario.parallelism.pipeline = case_.pp;
    scenario.parallelism.zero_stage = case_.zero;
    scenario.training.scaling = Scaling::weak;
    scenario.training.global_batch_size = case_.microbatches;
    scenario.training.precision = Precision::fp16;
    case_.more(scenario);
    return scenario;
  }
};

TEST_P(TrainingStep, IsTheSameInBothEngines) {
  SCOPED_TRACE(case_.name);
  const Program whole = predictor_.whole_program(scenario(), model_).program;
  const auto race = verify(whole);
  EXPECT_FALSE(race) << describe(whole, *race);
  const auto every_transfer = predictor_.every_transfer(scenario(), model_, SIZE_MAX);
  const Program& expanded = every_transfer->expanded.program;
  const Timeline ours = FastSimulator{routing_, cost_}.run(expanded);
  const Timeline theirs = SimGridSimulator{routing_, cost_}.run(expanded);
  const Difference engines = largest_difference(expanded, ours, theirs);
  EXPECT_LE(engines.relative, engines_agree_within) << engines.where;
  const auto off = [&](StepPredictor& predictor) {
    const Time predicted = predictor.predict(scenario(), model_, {}).prediction.step;
    return predicted.seconds().count() / theirs.makespan.seconds().count() - 1;
  };
  StepPredictor flows{machine_, cost_, Crowds::by_flows};
  RecordProperty("off_by", fmt::format("{:.4f} %", 100 * off(predictor_)));
  RecordProperty("flows_off_by", fmt::format("{:.4f} %", 100 * off(flows)));
  EXPECT_LE(std::abs(off(predictor_)), prediction_agrees_within);
  EXPECT_LE(std::abs(off(flows)), flows_agree_within);
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainingStep, testing::Range<std::size_t>(0, 23));

}  // namespace
}  // namespace rehearse::training_step_test
