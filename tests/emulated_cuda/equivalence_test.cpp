// The equivalence tests of the host backend on emulated GPUs: every lossless combination of
// strategies, and deep gradient compression and local SGD, on machines of 2, 4 and 8 of them,
// leaves what the interpreter leaves. Collectives lowered to transfers, and NCCL's own.
//
// Every combination runs on every machine, each time under another seed; three run under 20 seeds.
// REHEARSE_ALL_SEEDS=1 in the environment runs every combination under 20 seeds.
#include <cstdlib>

#include "kernels/cuda/cuda_executor.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/emulated_cuda/sparing.hpp"
#include "tests/equivalence/lossless_rows.hpp"
#include "tests/equivalence/plain_training.hpp"
#include "tools/measure/cuda_places.hpp"

namespace rehearse::equivalence_test {
namespace {

constexpr std::uint64_t seeds = 20;
bool all_seeds() { return std::getenv("REHEARSE_ALL_SEEDS") != nullptr; }

// Ranks beyond the devices share them.
std::vector<int> devices_for(std::size_t ranks, std::size_t devices) {
  std::vector<int> device_of;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    device_of.push_back(static_cast<int>(rank % devices));
  return device_of;
}

TrainingResult train_on_gpus(const SmallTraining& training, std::size_t count, std::size_t devices,
                             std::uint64_t seed) {
  emulated_cuda::reset({.devices = static_cast<int>(devices),
                        .memory = 4 << 20,
                        .seed = seed,
                        .peers = seed % 5 > 0});
  const BoundStep step = bound_step(training);
  // NCCL wants a device for every rank; the lowered collectives do not care.
  const bool by_nccl = training.ranks <= devices && seed % 2 == 0;
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program = by_nccl
                              ? step.program()
                              : expand_collectives(step.program(), routing,
                                                   {.algorithm = seed % 4 == 1 ? "ring" : "auto"});
  TrainingResult result;
  {
    const CudaMemory memory{program, devices_for(training.ranks, devices), places_of(step)};
    StagedCudaMemory staged{memory};
    const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
    fill_parameters(step, training.numbers, at);
    staged.store();
    CudaExecutor executor{memory};
    for (std::size_t s = 0; s < count; s += step.steps) {
      fill_batch(step, training.model, training.numbers, s, at);
      staged.store();
      executor.run(program);
      for (const double loss : read_losses(step, at)) result.losses.push_back(loss);
      note_scale(step, at, result);
      staged.store();
    }
    result.parameters = read_parameters(step, training.model, at);
  }
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
  return result;
}

// `bounds` of single tensors, in their order, beside that of all.
void expect_same(const SmallTraining& training, std::size_t count, std::size_t devices,
                 std::uint64_t seed, const TrainingResult& wanted, double bound = 1e-5,
                 const std::vector<double>& bounds = {}) {
  SCOPED_TRACE(std::to_string(training.ranks) + " ranks on " + std::to_string(devices) +
               " GPUs, seed " + std::to_string(seed));
  const TrainingResult got = train_on_gpus(training, count, devices, seed);
  ASSERT_EQ(got.losses.size(), wanted.losses.size());
  EXPECT_EQ(got.scales, wanted.scales);
  for (std::size_t s = 0; s < got.losses.size(); ++s)
    EXPECT_NEAR(got.losses[s], wanted.losses[s], bound * wanted.losses[s]) << "step " << s;
  EXPECT_LE(difference(got.parameters, wanted.parameters), bound);
  for (std::size_t t = 0; t < bounds.size(); ++t)
    EXPECT_LE(difference({got.parameters.at(t)}, {wanted.parameters.at(t)}), bounds[t])
        << wanted.parameters[t].name;
}

class CudaEquivalence : public testing::TestWithParam<Row> {};

TEST_P(CudaEquivalence, LeavesWhatTheInterpreterLeaves) {
  // Another place in the circle of seeds for each combination.
  const std::uint64_t place = std::hash<std::string>{}(GetParam().name);
  if (is_sparing() && GetParam().model != Model::mlp && place % 4 > 0)
    GTEST_SKIP() << "slow under the sanitizer; runs without";
  SmallTraining training = training_of(GetParam());
  const TrainingResult wanted = train(training, 1);
  const bool is_chosen = GetParam().name == "mlp_dp2_lamb" || GetParam().name == "mlp_pp2_tp2" ||
                         GetParam().name == "mlp_dp8_sgd";
  std::uint64_t seed = place % seeds;
  for (const std::size_t devices : {2, 4, 8}) {
    if (is_sparing() && devices != std::size_t{2} << place % 3) continue;
    const std::uint64_t count = all_seeds() || (is_chosen && !is_sparing()) ? seeds : 1;
    for (std::uint64_t i = 0; i < count && !HasFailure(); ++i)
      expect_same(training, 1, devices, 1 + (seed++ % seeds), wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaEquivalence, testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

SmallTraining lossy_training() {
  SmallTraining training{.model = small_mlp(), .ranks = 4};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = 8;
  training.scenario.training.micro_batch_size = 2;
  training.scenario.training.optimizer = OptimizerKind::momentum;
  training.numbers.learning_rate = 0.05;
  return training;
}

void expect_same_everywhere(const SmallTraining& training, std::size_t count, double bound,
                            const std::vector<double>& bounds = {}) {
  const TrainingResult wanted = train(training, count);
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed)
    expect_same(training, count, std::size_t{2} << seed % 3, seed, wanted, bound, bounds);
}

// How far apart two orders of sums in fp16 may leave each tensor. A sum of n numbers is rounded
// n - 1 times, each time by at most 2^-11 of what has been summed so far, so two orders differ by
// at most 2 (n - 1) 2^-11 Σ|g|, element by element. Two steps of momentum m move parameters by lr
// ((1 + m) g1 + g2) beyond what they have in common. Of this case: 9e-6 to 3e-5 of weights, 6e-5
// to 1.5e-3 of biases, which begin as zeros. Four algorithms on the host's interpreter are apart by
// at most 1.2e-4, of the last bias; so 5e-4 has room for a few roundings that add up.
std::vector<double> fp16_bounds(const SmallTraining& training, const TrainingResult& wanted) {
  const Training& how = training.scenario.training;
  const std::size_t ranks = training.ranks, each = how.micro_batch_size;
  PlainTraining plain{training, train(training, 0).parameters};
  PlainTraining::Gradients apart;
  for (std::size_t step = 0; step < 2; ++step) {
    PlainTraining::Gradients sum;
    const double weight = step == 0 ? 1 + training.numbers.momentum : 1;
    for (std::size_t r = 0; r < ranks; ++r) {
      double loss = 0;
      const auto g = plain.gradients(step * ranks * each + r * each, each, loss);
      if (apart.empty()) apart = PlainTraining::Gradients(g.size());
      if (sum.empty()) sum = PlainTraining::Gradients(g.size());
      for (std::size_t t = 0; t < g.size(); ++t) {
        apart[t].resize(g[t].size());
        sum[t].resize(g[t].size());
        for (std::size_t i = 0; i < g[t].size(); ++i) {
          const double part = g[t][i] / static_cast<double>(ranks);
          sum[t][i] += part;
          apart[t][i] += weight * std::abs(part);
        }
      }
    }
    plain.update(sum);
  }
  const double factor =
      training.numbers.learning_rate * 2 * static_cast<double>(ranks - 1) * 0x1p-11;
  std::vector<double> bounds;
  for (std::size_t t = 0; t < apart.size(); ++t) {
    double squares = 0, length = 0;
    for (const double x : apart[t]) squares += x * x;
    for (const float w : wanted.parameters[t].values)
      length += static_cast<double>(w) * static_cast<double>(w);
    bounds.push_back(1e-5 + factor * std::sqrt(squares / length));  // and that of fp32
  }
  return bounds;
}

TEST(CudaLossy, Compression) {
  for (const CompressionKind method : {CompressionKind::dgc, CompressionKind::fp16}) {
    SmallTraining training = lossy_training();
    training.scenario.compression.method = method;
    training.scenario.compression.sparsity = 0.95;
    training.scenario.compression.sampled_share = 1;
    SCOPED_TRACE(method == CompressionKind::dgc ? "dgc" : "fp16");
    if (method == CompressionKind::dgc)
      expect_same_everywhere(training, 2, 1e-5);
    else
      expect_same_everywhere(training, 2, 5e-4, fp16_bounds(training, train(training, 2)));
  }
}

// Codes are whole numbers, which have no order. A gradient that is half a code off in the last bit
// of fp32 becomes another code: a 31st of the largest, times lr (2 + momentum), of a tensor's
// length.
TEST(CudaLossy, Int8Gradients) {
  SmallTraining training = lossy_training();
  training.scenario.compression.method = CompressionKind::int8;
  training.scenario.parallelism.overlap_grad_reduce = true;
  training.scenario.parallelism.bucket_size = 2000_B;
  expect_same_everywhere(training, 2, 1e-5);
}

// fp16 with loss scaling from a scale that overflows, bf16, and autocast, on 8, 4 and 2 ranks.
std::vector<Row> mixed_rows() {
  const Change scaled = [](Scenario& s) {
    s.training.precision = Precision::fp16;
    s.training.loss_scaling = LossScaling::dynamic;
    s.training.loss_scale_window = 2;
    s.training.optimizer = OptimizerKind::momentum;
  };
  const Change bf16 = [](Scenario& s) { s.training.precision = Precision::bf16; };
  const Change wide = [](Scenario& s) { s.training.gradients_in_fp32 = true; };
  const Change casts = [](Scenario& s) { s.training.autocast = true; };
  return {
      {"mlp_fp16_dp4", Model::mlp, 4, 2, {scaled, wide, overlap(400_B)}},
      {"mlp_fp16_zero2", Model::mlp, 4, 2, {scaled, zero(2)}},
      {"mlp_fp16_tp2_pp2", Model::mlp, 4, 2, {scaled, tensor(), pipeline("1F1B")}},
      {"mlp_fp16_lamb", Model::mlp, 2, 4, {scaled, by(OptimizerKind::lamb)}},
      {"mlp_fp16_autocast", Model::mlp, 2, 2, {scaled, casts}},
      {"mlp_bf16_zero3", Model::mlp, 4, 2, {bf16, zero(3), by(OptimizerKind::momentum)}},
      {"gpt_fp16_tp2_in_parts", Model::gpt, 2, 4, {scaled, in_parts(), sequence()}},
      {"gpt_fp16_autocast_in_parts", Model::gpt, 2, 4, {scaled, casts, in_parts()}},
      {"llama_fp16_tp2_pp2_dp2_zero1",
       Model::llama,
       8,
       1,
       {scaled, sequence(), pipeline("1F1B"), zero(1), wide}},
      {"llama_bf16_autocast_zero3",
       Model::llama,
       2,
       2,
       {bf16, casts, zero(3), by(OptimizerKind::momentum)}},
  };
}

class CudaMixed : public testing::TestWithParam<Row> {};

TEST_P(CudaMixed, LeavesWhatTheInterpreterLeaves) {
  const std::uint64_t place = std::hash<std::string>{}(GetParam().name);
  if (is_sparing() && GetParam().model != Model::mlp && place % 4 > 0)
    GTEST_SKIP() << "slow under the sanitizer; runs without";
  SmallTraining training = training_of(GetParam());
  training.numbers.loss_scale = 0x1p+22;
  const std::size_t count = GetParam().model == Model::mlp ? 8 : 3;
  const TrainingResult wanted = train(training, count);
  const double unit = training.scenario.training.precision == Precision::fp16 ? 0x1p-11 : 0x1p-8;
  const std::uint64_t runs = all_seeds() ? seeds : 2;
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i)
    expect_same(training, count, std::size_t{2} << (place + i) % 3, 1 + (place + i) % seeds, wanted,
                unit);
}

INSTANTIATE_TEST_SUITE_P(All, CudaMixed, testing::ValuesIn(mixed_rows()),
                         [](const auto& row) { return row.param.name; });

TEST(CudaLossy, LocalSgd) {
  SmallTraining training = lossy_training();
  training.scenario.local_sgd.interval = 2;
  expect_same_everywhere(training, 2, 1e-5);
}

}  // namespace
}  // namespace rehearse::equivalence_test
