// Local SGD on numbers against the algorithm written down: replicas that go on
// by themselves with their own samples, and average their parameters (not their
// momentum) now and then.
#include "strategies/methods/local_sgd.hpp"

#include <gtest/gtest.h>

#include "tests/equivalence/plain_training.hpp"

namespace rehearse::local_sgd_test {
namespace {

struct Case {
  std::string name;
  Workload model;
  OptimizerKind optimizer{};
  LocalSgd how;
  std::size_t ranks = 2, tensor = 1;
};
void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

SmallTraining training_of(const Case& which) {
  SmallTraining training{.model = which.model, .ranks = which.ranks};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = 8;
  training.scenario.training.micro_batch_size = 2;
  training.scenario.training.optimizer = which.optimizer;
  training.scenario.parallelism.tensor = which.tensor;
  training.scenario.parallelism.bucket_size = 2000_B;
  training.scenario.local_sgd = which.how;
  training.numbers.learning_rate = 0.02;
  return training;
}

void average(std::vector<PlainTraining>& replicas) {
  for (std::size_t t = 0; t < replicas.front().tensors().size(); ++t)
    for (std::size_t i = 0; i < replicas.front().tensors()[t].w.size(); ++i) {
      double sum = 0;
      for (PlainTraining& replica : replicas) sum += replica.tensors()[t].w[i];
      for (PlainTraining& replica : replicas)
        replica.tensors()[t].w[i] = sum / static_cast<double>(replicas.size());
    }
}

class LocalTraining : public testing::TestWithParam<Case> {};

TEST_P(LocalTraining, IsTheAlgorithm) {
  const SmallTraining training = training_of(GetParam());
  const BoundStep step = bound_step(training);
  const std::optional<Race> race = verify(step.program());
  ASSERT_FALSE(race) << describe(step.program(), *race);
  const std::vector<LocalStep> schedule = local_schedule(GetParam().how);
  const std::size_t replicas = GetParam().ranks / GetParam().tensor, each = 8 / replicas;
  const std::size_t steps = (20 / schedule.size() + 1) * schedule.size();
  std::vector<PlainTraining> plain(replicas,
                                   PlainTraining{training, train(training, 0).parameters});
  const TrainingResult result = train(training, steps);
  for (std::size_t s = 0; s < steps; ++s) {
    const LocalStep kind = schedule[s % schedule.size()];
    double mean = 0;
    PlainTraining::Gradients all;
    for (std::size_t d = 0; d < replicas; ++d) {
      double loss = 0;
      const auto g = plain[d].gradients(8 * s + each * d, each, loss);
      mean += loss / static_cast<double>(replicas);
      if (kind != LocalStep::synchronous) plain[d].update(g);
      if (all.empty()) all.assign(g.size(), {});
      for (std::size_t t = 0; t < g.size(); ++t) {
        all[t].resize(g[t].size());
        for (std::size_t i = 0; i < g[t].size(); ++i)
          all[t][i] += g[t][i] / static_cast<double>(replicas);
      }
    }
    if (kind == LocalStep::synchronous)
      for (PlainTraining& replica : plain) replica.update(all);
    if (kind == LocalStep::averaging) average(plain);
    ASSERT_NEAR(result.losses[s], mean, 1e-5 * mean) << "step " << s;
  }
  ASSERT_EQ(schedule.back(), LocalStep::averaging);
  EXPECT_LE(difference(result.parameters, plain.front().parameters()), 1e-5);
  EXPECT_EQ(train(training, schedule.size(), 5).parameters,
            train(training, schedule.size()).parameters);
}

INSTANTIATE_TEST_SUITE_P(
    All, LocalTraining,
    testing::Values(
        Case{"fixed", small_mlp(), OptimizerKind::sgd, {.interval = 4}},
        Case{"fixed_momentum_dp4", small_mlp(), OptimizerKind::momentum, {.interval = 3}, 4},
        Case{"post",
             small_mlp(),
             OptimizerKind::momentum,
             {.interval = 4, .kind = LocalInterval::post_local, .synchronous_steps = 2}},
        Case{"adaptive",
             small_mlp(),
             OptimizerKind::sgd,
             {.interval = 4, .kind = LocalInterval::adaptive, .loss_half_steps = 3, .steps = 10}},
        Case{"tensor_parallel", small_mlp(), OptimizerKind::momentum, {.interval = 2}, 4, 2}),
    [](const auto& which) { return which.param.name; });

// Averages now and then reach what the synchronous training reaches, to a
// tenth.
TEST(LocalTraining, Learns) {
  const auto last = [](std::size_t interval) {
    SmallTraining training =
        training_of({"", small_mlp(), OptimizerKind::momentum, {.interval = interval}, 4});
    training.scenario.training.global_batch_size = 32;
    training.numbers.learning_rate = 0.1;
    return train(training, 600).losses.back();
  };
  const double synchronous = last(0), local = last(4);
  EXPECT_LT(synchronous, 1.0);
  EXPECT_LT(local, 1.1);
}

}  // namespace
}  // namespace rehearse::local_sgd_test
