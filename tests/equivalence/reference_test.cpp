// One device's training against models, gradients and optimizers written once
// more in plain fp64.
#include <gtest/gtest.h>

#include "tests/equivalence/plain_training.hpp"

namespace rehearse::reference_test {
namespace {

struct Case {
  std::string name;
  Workload model;
  OptimizerKind optimizer{};
  double rate = 0.01;
  double dropout = 0;
  bool flash = true;
};
void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

class OneDevice : public testing::TestWithParam<Case> {};

TEST_P(OneDevice, TrainsAsThePlainModelDoes) {
  const Case& which = GetParam();
  constexpr std::size_t batch = 4, steps = 20;
  SmallTraining training{.model = which.model};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = batch;
  training.scenario.training.micro_batch_size = batch;
  training.scenario.training.optimizer = which.optimizer;
  training.scenario.training.dropout = which.dropout;
  training.scenario.training.flash_attention = which.flash;
  training.numbers.learning_rate = which.rate;
  PlainTraining plain{training, train(training, 0).parameters};
  const TrainingResult result = train(training, steps);
  for (std::size_t s = 0; s < steps; ++s) {
    double loss = 0;
    const PlainTraining::Gradients g = plain.gradients(s * batch, batch, loss);
    EXPECT_NEAR(result.losses[s], loss, 1e-5 * loss) << "step " << s;
    plain.update(g);
  }
  EXPECT_LE(difference(result.parameters, plain.parameters()), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    All, OneDevice,
    testing::Values(Case{"mlp_sgd", small_mlp(), OptimizerKind::sgd, 0.1},
                    Case{"mlp_momentum", small_mlp(), OptimizerKind::momentum},
                    Case{"mlp_adam", small_mlp(), OptimizerKind::adam, 0.001},
                    Case{"mlp_lars", small_mlp(), OptimizerKind::lars, 1},
                    Case{"mlp_lamb", small_mlp(), OptimizerKind::lamb},
                    Case{"gpt_momentum", small_gpt(2), OptimizerKind::momentum},
                    Case{"llama_adam", small_llama(2), OptimizerKind::adam, 0.001},
                    Case{"gpt_dropout", small_gpt(2), OptimizerKind::momentum, 0.01, 0.2},
                    Case{"llama_dropout_of_probabilities", small_llama(1), OptimizerKind::sgd, 0.1,
                         0.3, false}),
    [](const auto& which) { return which.param.name; });

// The task can be learned: what is stated is what one device reaches here.
TEST(OneDeviceLearns, TheSyntheticTasks) {
  for (const Workload& model : {small_mlp(), small_gpt(2), small_llama(2)}) {
    SmallTraining training{.model = model};
    training.scenario.training.precision = Precision::fp32;
    training.scenario.training.global_batch_size = 32;
    training.scenario.training.micro_batch_size = 32;
    training.scenario.training.optimizer = OptimizerKind::adam;
    const std::vector<double> losses = train(training, 150).losses;
    EXPECT_LT(losses.back(), 0.6 * losses.front()) << model.name;
  }
}

}  // namespace
}  // namespace rehearse::reference_test
