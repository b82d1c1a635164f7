// Compressed gradients on numbers against the algorithms written down in a few
// plain loops: deep gradient compression (Lin et al. 2018), sums in fp16, and of 8-bit codes.
#include <gtest/gtest.h>

#include <set>

#include "kernels/math/number_formats.hpp"
#include "tests/equivalence/plain_training.hpp"

namespace rehearse::compression_test {
namespace {

constexpr std::size_t ranks = 4, batch = 8;

SmallTraining training_of(CompressionKind method, OptimizerKind optimizer) {
  SmallTraining training{.model = small_mlp(), .ranks = ranks};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = batch;
  training.scenario.training.micro_batch_size = batch / ranks;
  training.scenario.training.optimizer = optimizer;
  Compression& how = training.scenario.compression;
  how.method = method;
  how.sparsity = 0.95;
  how.sampled_share = 1;  // the threshold is exact
  training.numbers.learning_rate = 0.05;
  return training;
}

void expect_no_race(const SmallTraining& training) {
  const BoundStep step = bound_step(training);
  const std::optional<Race> race = verify(step.program());
  EXPECT_FALSE(race) << describe(step.program(), *race);
}

// The gradients of all tensors as one vector, in the order of memory: last
// layer first.
std::vector<double> flat(const PlainTraining::Gradients& g, double factor) {
  std::vector<double> all;
  for (std::size_t layer = g.size() / 2; layer-- > 0;)
    for (const std::size_t t : {2 * layer, 2 * layer + 1})
      for (const double x : g[t]) all.push_back(factor * x);
  return all;
}

PlainTraining::Gradients in_tensors(const std::vector<double>& all,
                                    const PlainTraining::Gradients& like) {
  PlainTraining::Gradients g = like;
  std::size_t at = 0;
  for (std::size_t layer = g.size() / 2; layer-- > 0;)
    for (const std::size_t t : {2 * layer, 2 * layer + 1})
      for (double& x : g[t]) x = all[at++];
  return g;
}

/// One rank of the paper's algorithm 1 with momentum correction, clipping and
/// masking.
struct PlainSender {
  std::vector<double> u, v;

  void send(std::vector<double> g, double momentum, double limit, std::vector<double>& sum) {
    u.resize(g.size());
    v.resize(g.size());
    double squares = 0;
    for (const double x : g) squares += x * x;
    const double local = limit / std::sqrt(static_cast<double>(ranks));
    const double factor = std::sqrt(squares) > local ? local / std::sqrt(squares) : 1;
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < g.size(); ++i) {
      u[i] = momentum * u[i] + factor * g[i];
      v[i] += u[i];
      order.emplace_back(-std::abs(v[i]), i);
    }
    std::sort(order.begin(), order.end());
    const auto sent =
        static_cast<std::size_t>(std::ceil((1 - 0.95) * static_cast<double>(g.size())));
    for (std::size_t k = 0; k < sent; ++k) {
      const std::size_t i = order[k].second;
      sum[i] += v[i];
      u[i] = v[i] = 0;
    }
  }
};

/// Where the buckets end, counted in gradients: as full as they may be with whole layers.
std::vector<std::size_t> bucket_ends(const SmallTraining& training) {
  std::set<std::size_t> begins;
  std::size_t all = 0;
  const BoundStep step = bound_step(training);
  for (const OpNote& note : step.step.notes)
    if (note.purpose == Purpose::compress)
      begins.insert(static_cast<std::size_t>(note.begin.count()) / 4);
  for (const ParameterPart& part : step.owned)
    all += static_cast<std::size_t>(part.slice.size.count()) / 4;
  std::vector<std::size_t> ends{std::next(begins.begin()), begins.end()};
  ends.push_back(all);
  return ends;
}

std::vector<double> sum_of_codes(const std::vector<std::vector<double>>& of_rank,
                                 const std::vector<std::size_t>& ends) {
  std::vector<double> sums(of_rank.front().size());
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    double largest = 0;
    for (const std::vector<double>& g : of_rank)
      for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(g[i]));
    const double scale = largest / 31;  // 4 · 31 fits into 8 bits, 4 · 32 does not
    for (const std::vector<double>& g : of_rank)
      for (std::size_t i = begin; i < end; ++i) sums[i] += std::nearbyint(g[i] / scale) * scale;
    begin = end;
  }
  return sums;
}

class Dgc : public testing::TestWithParam<OptimizerKind> {};

TEST_P(Dgc, IsTheAlgorithm) {
  const SmallTraining training = training_of(CompressionKind::dgc, GetParam());
  expect_no_race(training);
  constexpr std::size_t steps = 20;
  const TrainingResult result = train(training, steps);
  SmallTraining plain_rule = training;
  plain_rule.scenario.training.optimizer = OptimizerKind::sgd;  // momentum is in what is sent
  PlainTraining plain{plain_rule, train(training, 0).parameters};
  std::vector<PlainSender> senders(ranks);
  const double momentum = GetParam() == OptimizerKind::momentum ? 0.9 : 0;
  for (std::size_t s = 0; s < steps; ++s) {
    std::vector<double> sum;
    PlainTraining::Gradients like;
    double mean = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      double loss = 0;
      like = plain.gradients(s * batch + r * batch / ranks, batch / ranks, loss);
      mean += loss / ranks;
      const std::vector<double> g = flat(like, 1.0 / ranks);
      sum.resize(g.size());
      senders[r].send(g, momentum, 1, sum);
    }
    ASSERT_NEAR(result.losses[s], mean, 1e-5 * mean) << "step " << s;
    plain.update(in_tensors(sum, like));
  }
  EXPECT_LE(difference(result.parameters, plain.parameters()), 1e-5);
  EXPECT_EQ(train(training, 3, 5).parameters, train(training, 3).parameters);
}

INSTANTIATE_TEST_SUITE_P(All, Dgc, testing::Values(OptimizerKind::sgd, OptimizerKind::momentum));

TEST(Fp16Gradients, AreRoundedAndSummedInTheirFormat) {
  SmallTraining training = training_of(CompressionKind::fp16, OptimizerKind::momentum);
  training.scenario.parallelism.overlap_grad_reduce = true;
  training.scenario.parallelism.bucket_size = 1000_B;
  expect_no_race(training);
  constexpr std::size_t steps = 20;
  const TrainingResult result = train(training, steps);
  PlainTraining plain{training, train(training, 0).parameters};
  for (std::size_t s = 0; s < steps; ++s) {
    std::vector<float> sum;
    PlainTraining::Gradients like;
    double mean = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      double loss = 0;
      like = plain.gradients(s * batch + r * batch / ranks, batch / ranks, loss);
      mean += loss / ranks;
      const std::vector<double> g = flat(like, 1.0 / ranks);
      for (std::size_t i = 0; i < g.size(); ++i) {
        const float rounded = to_float(to_fp16(static_cast<float>(g[i])));
        if (r == 0) sum.push_back(rounded);
        if (r > 0) sum[i] = to_float(to_fp16(sum[i] + rounded));
      }
    }
    ASSERT_NEAR(result.losses[s], mean, 1e-5 * mean) << "step " << s;
    plain.update(in_tensors({sum.begin(), sum.end()}, like));
  }
  EXPECT_LE(difference(result.parameters, plain.parameters()), 2e-5);
}

// Codes of one scale for all ranks, which are added as they are: 31 levels to each side for 4
// ranks.
TEST(Int8Gradients, AreCodesThatAreAdded) {
  SmallTraining training = training_of(CompressionKind::int8, OptimizerKind::momentum);
  training.scenario.parallelism.overlap_grad_reduce = true;
  training.scenario.parallelism.bucket_size = 2000_B;
  expect_no_race(training);
  constexpr std::size_t steps = 20;
  const TrainingResult result = train(training, steps);
  EXPECT_EQ(train_expanded(training, 5, "ring").parameters, train(training, 5).parameters)
      << "sums of whole numbers have no order";
  EXPECT_EQ(train(training, 3, 5).parameters, train(training, 3).parameters);
  PlainTraining plain{training, train(training, 0).parameters};
  const std::vector<std::size_t> ends = bucket_ends(training);
  for (std::size_t s = 0; s < steps; ++s) {
    std::vector<std::vector<double>> of_rank;
    PlainTraining::Gradients like;
    double mean = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      double loss = 0;
      like = plain.gradients(s * batch + r * batch / ranks, batch / ranks, loss);
      mean += loss / ranks;
      of_rank.push_back(flat(like, 1.0 / ranks));
    }
    // The scale is a coarse one: where x / scale is near a half, fp32 and fp64 choose differently.
    ASSERT_NEAR(result.losses[s], mean, 1e-3 * mean) << "step " << s;
    plain.update(in_tensors(sum_of_codes(of_rank, ends), like));
  }
  EXPECT_LE(difference(result.parameters, plain.parameters()), 1e-3);
}

// A twentieth of the gradients, found by a sampled threshold, and half or a
// quarter of the bytes reach the loss that whole gradients reach, to a tenth.
TEST(CompressedGradients, Learn) {
  const auto last = [](CompressionKind method) {
    SmallTraining training = training_of(method, OptimizerKind::momentum);
    training.scenario.training.global_batch_size = 32;
    training.scenario.training.clip_grad = 5;
    training.scenario.compression.sampled_share = 0.25;
    training.numbers.learning_rate = 0.1;
    return train(training, 600).losses.back();
  };
  EXPECT_LT(last(CompressionKind::none), 1.0);
  EXPECT_LT(last(CompressionKind::fp16), 1.1);
  EXPECT_LT(last(CompressionKind::int8), 1.1);
  EXPECT_LT(last(CompressionKind::dgc), 1.1);
}

}  // namespace
}  // namespace rehearse::compression_test
