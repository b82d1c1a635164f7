// The whole training's time by its factors, and the time to a target by the gradient noise scale.
#include <gtest/gtest.h>

#include "tests/support/training.hpp"
#include "tools/predict/training_cost.hpp"

namespace rehearse::scaling_law_test {
namespace {

// Ten GPUs of 100 TFLOP/s that compute 80 % of a step of 2 s and do 400 TFLOP in it.
Prediction prediction() {
  Prediction told;
  told.world = 10;
  told.step = 2'000'000_us;
  told.mean.compute = 1'600'000_us;
  told.samples = 512;
  told.tokens = 512 * 1000;
  told.model_flops = Flops{4e14};
  told.peak = FlopsPerSecond{1e14};
  return told;
}

TEST(ScalingLaw, FactorsMultiplyToTheTime) {
  Training training;
  training.tokens = 512e6;  // 1,000 steps
  const auto cost = training_cost(training, prediction(), prediction().step);
  ASSERT_TRUE(cost);
  const ScalingLaw& law = cost->law;
  EXPECT_DOUBLE_EQ(cost->steps, 1000);
  EXPECT_DOUBLE_EQ(law.work, 1000 * 4e14);
  EXPECT_DOUBLE_EQ(law.parallel_efficiency, 0.8);
  EXPECT_DOUBLE_EQ(law.kernel_efficiency, 0.25);  // 400 TFLOP in 1.6 s of ten times 100 TFLOP/s
  const double seconds =
      law.work / (law.peak * law.kernel_efficiency * law.devices * law.parallel_efficiency);
  EXPECT_DOUBLE_EQ(seconds, 2000);
  EXPECT_DOUBLE_EQ(cost->days * 86400, seconds);
  EXPECT_FALSE(cost->target);
}

// Steps S = S_min (1 + B_noise / B), data S · B = E_min (1 + B / B_noise).
TEST(ScalingLaw, NoiseScaleTradesStepsForData) {
  Training training;
  training.tokens = 512e6;
  training.gradient_noise_scale = 1'536'000;  // tokens: three times the batch
  const auto cost = training_cost(training, prediction(), prediction().step);
  ASSERT_TRUE(cost && cost->target);
  EXPECT_DOUBLE_EQ(cost->target->data_efficiency, 0.75);  // 1 / (1 + 1/3)
  EXPECT_DOUBLE_EQ(cost->target->days, cost->days * 4 / 3);
  Prediction doubled = prediction();  // twice the batch in the same time
  doubled.samples *= 2, doubled.tokens *= 2;
  const auto faster = training_cost(training, doubled, doubled.step);
  // Half the steps on the same data; but 1 / (1 + 2/3): 0.6 instead of 0.75 of each sample.
  EXPECT_DOUBLE_EQ(faster->target->data_efficiency, 0.6);
  EXPECT_DOUBLE_EQ(faster->target->days / cost->target->days, 0.5 * 0.75 / 0.6);
}

}  // namespace
}  // namespace rehearse::scaling_law_test
