// The equivalence tests of the host backend on emulated GPUs: every lossless combination of
// strategies, and deep gradient compression and local SGD, on machines of 2, 4 and 8 of them,
// leaves what the interpreter leaves. Collectives lowered to transfers, and NCCL's own.
//
// Every combination runs on every machine, each time under another seed; three run under 20 seeds.
// REHEARSE_ALL_SEEDS=1 in the environment runs every combination under 20 seeds.
#include <cstdlib>

#include "kernels/cuda_executor.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/equivalence/lossless_rows.hpp"
#include "tools/cuda_places.hpp"

namespace rehearse {
namespace {

constexpr std::uint64_t seeds = 20;
// Fibers are ten times slower there: a third of the machines, and a quarter of the transformers.
#ifdef __SANITIZE_ADDRESS__
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

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
      staged.store();
    }
    result.parameters = read_parameters(step, training.model, at);
  }
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
  return result;
}

void expect_same(const SmallTraining& training, std::size_t count, std::size_t devices,
                 std::uint64_t seed, const TrainingResult& wanted, double bound = 1e-5) {
  SCOPED_TRACE(std::to_string(training.ranks) + " ranks on " + std::to_string(devices) +
               " GPUs, seed " + std::to_string(seed));
  const TrainingResult got = train_on_gpus(training, count, devices, seed);
  ASSERT_EQ(got.losses.size(), wanted.losses.size());
  for (std::size_t s = 0; s < got.losses.size(); ++s)
    EXPECT_NEAR(got.losses[s], wanted.losses[s], bound * wanted.losses[s]) << "step " << s;
  EXPECT_LE(difference(got.parameters, wanted.parameters), bound);
}

class CudaEquivalence : public testing::TestWithParam<Row> {};

TEST_P(CudaEquivalence, LeavesWhatTheInterpreterLeaves) {
  // Another place in the circle of seeds for each combination.
  const std::uint64_t place = std::hash<std::string>{}(GetParam().name);
  if (is_sanitized && GetParam().model != Model::mlp && place % 4 > 0)
    GTEST_SKIP() << "slow under the sanitizer; runs without";
  SmallTraining training = training_of(GetParam());
  const TrainingResult wanted = train(training, 1);
  const bool is_chosen = GetParam().name == "mlp_dp2_lamb" || GetParam().name == "mlp_pp2_tp2" ||
                         GetParam().name == "mlp_dp8_sgd";
  std::uint64_t seed = place % seeds;
  for (const std::size_t devices : {2, 4, 8}) {
    if (is_sanitized && devices != std::size_t{2} << place % 3) continue;
    const std::uint64_t count = all_seeds() || (is_chosen && !is_sanitized) ? seeds : 1;
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

void expect_same_everywhere(const SmallTraining& training, std::size_t count, double bound) {
  const TrainingResult wanted = train(training, count);
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed)
    expect_same(training, count, std::size_t{2} << seed % 3, seed, wanted, bound);
}

TEST(CudaLossy, Compression) {
  for (const CompressionKind method : {CompressionKind::dgc, CompressionKind::fp16}) {
    SmallTraining training = lossy_training();
    training.scenario.compression.method = method;
    training.scenario.compression.sparsity = 0.95;
    training.scenario.compression.sampled_share = 1;
    SCOPED_TRACE(method == CompressionKind::dgc ? "dgc" : "fp16");
    // Sums of fp16 numbers depend on their order by its last bit, 2^-11 of the gradient.
    expect_same_everywhere(training, 2, method == CompressionKind::dgc ? 1e-5 : 5e-4);
  }
}

TEST(CudaLossy, LocalSgd) {
  SmallTraining training = lossy_training();
  training.scenario.local_sgd.interval = 2;
  expect_same_everywhere(training, 2, 1e-5);
}

}  // namespace
}  // namespace rehearse
