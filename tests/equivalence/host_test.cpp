// The same trainings by threads on real memory: the bits of the interpreter, whatever the ranks
// race for. Under the thread sanitizer a missing edge would be a report.
#include <gtest/gtest.h>

#include "kernels/host_executor.hpp"
#include "tests/equivalence/trainings.hpp"

namespace rehearse {
namespace {

struct Case {
  std::string name;
  SmallTraining training;
};
void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

SmallTraining small(Workload model, std::size_t ranks, std::size_t micro_batch) {
  SmallTraining training{.model = std::move(model), .ranks = ranks};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = 8;
  training.scenario.training.micro_batch_size = micro_batch;
  return training;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, SmallTraining training, auto change) {
    change(training.scenario);
    list.push_back({std::move(name), std::move(training)});
  };
  add("mlp_dp4_overlap", small(small_mlp(), 4, 1), [](Scenario& s) {
    s.parallelism.overlap_grad_reduce = true;
    s.parallelism.bucket_size = 400_B;
  });
  add("gpt_zbv", small(small_gpt(4), 2, 1), [](Scenario& s) {
    s.parallelism.pipeline = 2;
    s.parallelism.schedule = "ZBVZeroBubble";
  });
  add("llama_zero3", small(small_llama(2), 2, 1), [](Scenario& s) {
    s.parallelism.zero_stage = 3;
    s.parallelism.overlap_grad_reduce = s.parallelism.overlap_param_gather = true;
  });
  add("llama_tp2_pp2_dp2_zero1", small(small_llama(2), 8, 1), [](Scenario& s) {
    s.parallelism.tensor = s.parallelism.pipeline = 2;
    s.parallelism.sequence_parallel = true;
    s.parallelism.zero_stage = 1;
    s.parallelism.recompute = Recompute::full;
    s.parallelism.overlap_grad_reduce = s.parallelism.overlap_param_gather = true;
    s.parallelism.bucket_size = 2000_B;
  });
  add("mlp_dgc", small(small_mlp(), 2, 4), [](Scenario& s) {
    s.compression.method = CompressionKind::dgc;
    s.compression.sparsity = 0.9;
    s.training.optimizer = OptimizerKind::momentum;
  });
  add("mlp_dp4_fp16_gradients", small(small_mlp(), 4, 2),
      [](Scenario& s) { s.compression.method = CompressionKind::fp16; });
  add("gpt_tp2_sequence_parallel", small(small_gpt(2), 2, 4), [](Scenario& s) {
    s.parallelism.tensor = 2;
    s.parallelism.sequence_parallel = true;
    s.parallelism.recompute = Recompute::selective;
  });
  add("gpt_interleaved_dp2", small(small_gpt(4), 4, 1), [](Scenario& s) {
    s.parallelism.pipeline = 2;
    s.parallelism.schedule = "Interleaved1F1B";
    s.parallelism.virtual_pipeline = 2;
    s.parallelism.overlap_grad_reduce = true;
  });
  add("llama_zero2_accumulation", small(small_llama(1), 2, 2),
      [](Scenario& s) { s.parallelism.zero_stage = 2; });
  add("mlp_lamb", small(small_mlp(), 2, 4),
      [](Scenario& s) { s.training.optimizer = OptimizerKind::lamb; });
  add("mlp_local_sgd", small(small_mlp(), 2, 4), [](Scenario& s) { s.local_sgd.interval = 2; });
  return list;
}

class HostTraining : public testing::TestWithParam<Case> {};

TEST_P(HostTraining, GivesTheBitsOfTheInterpreter) {
  const SmallTraining& training = GetParam().training;
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program = expand_collectives(step.program(), routing, {.algorithm = "ring"});
  HostMemory host{program};
  const RankMemory memory = [&](Rank rank, const Slice& slice) {
    host.cover(rank, slice);
    return host.at(rank, slice);
  };
  fill_parameters(step, training.numbers, memory);
  HostExecutor executor{host};
  std::vector<double> losses;
  constexpr std::size_t steps = 4;
  for (std::size_t s = 0; s < steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, memory);
    executor.run(program);
    for (const double loss : read_losses(step, memory)) losses.push_back(loss);
  }
  const TrainingResult expected = train_expanded(training, steps, "ring");
  EXPECT_EQ(losses, expected.losses);
  EXPECT_EQ(read_parameters(step, training.model, memory), expected.parameters);
}

INSTANTIATE_TEST_SUITE_P(All, HostTraining, testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace rehearse
