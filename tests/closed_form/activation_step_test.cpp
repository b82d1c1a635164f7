// What a rank keeps for its backward passes over a whole step, at the peak: micro-batches in flight
// times what a stage keeps of each.
#include <gtest/gtest.h>

#include <numeric>

#include "strategies/layers/tensor_parallel.hpp"
#include "tests/support/training.hpp"

namespace rehearse::activation_step_test {
namespace {

// Every kernel takes a microsecond, so that no two actions that follow each other coincide.
class Unit final : public CostModel {
 public:
  Seconds compute(const Compute&, const Accelerator&) const override { return Seconds{1e-6}; }
};

Workload small_gpt(std::int64_t layers) {
  return transformer_workload("small", "gpt",
                              {.hidden = 64,
                               .layers = layers,
                               .heads = 4,
                               .kv_heads = 4,
                               .head_size = 16,
                               .ffn = 256,
                               .vocabulary = 512,
                               .positions = 32});
}

struct Kept {
  Bytes total, input;  // at the peak: all activations, and those that are layers' inputs
};

Kept activations(const RoleReport& role) {
  Kept kept;
  for (std::size_t k = 0; k < activation_kinds; ++k)
    kept.total += role.peak[static_cast<std::size_t>(MemoryKind::input) + k];
  kept.input = role.peak[static_cast<std::size_t>(MemoryKind::input)];
  return kept;
}

Bytes sum(const Activations& kept) { return std::accumulate(kept.begin(), kept.end(), Bytes{}); }

struct Job {
  Workload model;
  Scenario scenario;
  std::vector<RoleReport> roles;

  /// Of a layer, for one micro-batch.
  LayerPieces pieces(std::size_t layer) const {
    return pieces_of(model, layer, sharding_of(model, scenario.parallelism, scenario.training));
  }
  /// Layers [begin, end) of the model, for one micro-batch.
  Bytes kept(std::size_t begin, std::size_t end) const {
    Bytes bytes;
    const bool selective = scenario.parallelism.recompute == Recompute::selective;
    for (std::size_t l = begin; l < end; ++l)
      bytes += sum(selective ? pieces(l).kept_selective : pieces(l).kept);
    return bytes;
  }
};

Job run(std::string_view schedule, std::size_t ranks, std::size_t microbatches,
        Recompute recompute = Recompute::none) {
  Job job{small_gpt(static_cast<std::int64_t>(2 * ranks)), {}, {}};
  job.scenario.training.global_batch_size = microbatches;
  job.scenario.parallelism.pipeline = ranks;
  job.scenario.parallelism.schedule = schedule;
  job.scenario.parallelism.recompute = recompute;
  job.scenario.training.flash_attention = false;
  const Topology machine = free_star(ranks);
  job.roles = StepPredictor(machine, Unit{}).predict(job.scenario, job.model, {}).prediction.roles;
  EXPECT_EQ(job.roles.size(), ranks);
  return job;
}

/// First and last layer of a rank's stage: two blocks, and the ends of the model at its ends.
std::pair<std::size_t, std::size_t> layers_of(const Job& job, std::size_t rank) {
  const std::size_t ranks = job.roles.size();
  return {rank == 0 ? 0 : 1 + 2 * rank, rank + 1 == ranks ? job.model.layers.size() : 3 + 2 * rank};
}

TEST(ActivationsOfAStep, OneFOneBKeepsAsManyAsItHasInFlight) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective})
    for (const std::size_t p : {1, 2, 4})
      for (const std::size_t m : {1, 2, 3, 8}) {
        const Job one = run("1F1B", p, m, recompute), all = run("GPipe", p, m, recompute);
        for (std::size_t r = 0; r < p; ++r) {
          const auto [begin, end] = layers_of(one, r);
          const Bytes stage = one.kept(begin, end);
          const auto in_flight = static_cast<std::int64_t>(std::min(m, p - r));
          EXPECT_EQ(activations(one.roles[r]).total, in_flight * stage)
              << "min(m, p - r) of rank " << r << ", p " << p << ", m " << m;
          EXPECT_EQ(activations(all.roles[r]).total, static_cast<std::int64_t>(m) * stage)
              << "GPipe, rank " << r << ", p " << p << ", m " << m;
        }
      }
}

// The inputs of all blocks in flight, and all of the one that is being computed again.
TEST(ActivationsOfAStep, FullRecomputationKeepsInputsAndOneLayer) {
  for (const std::size_t p : {2, 4}) {
    const std::size_t m = 8;
    const Job job = run("1F1B", p, m, Recompute::full);
    for (std::size_t r = 0; r + 1 < p; ++r) {
      const auto in_flight = static_cast<std::int64_t>(p - r);
      const LayerPieces block = job.pieces(1);
      ASSERT_TRUE(block.recomputes);
      const Bytes ends = r == 0 ? sum(job.pieces(0).kept) : Bytes{0};  // the embedding is not
      EXPECT_EQ(activations(job.roles[r]).total,
                in_flight * (2 * block.input + ends) + sum(block.kept));
    }
  }
}

// Korthikanti et al. 2022, equation 2, without the ends: s b h L (34 + 5 a s / h) on one rank.
TEST(ActivationsOfAStep, EquationTwo) {
  Job job{small_gpt(8), {}, {}};
  job.scenario.training.dropout = 0.1;
  job.scenario.training.flash_attention = false;
  const Topology machine = free_star(1);
  job.roles = StepPredictor(machine, Unit{}).predict(job.scenario, job.model, {}).prediction.roles;
  const std::int64_t s = 32, h = 64, a = 4, layers = 8;
  const Bytes ends = job.kept(0, 1) + job.kept(9, job.model.layers.size());
  EXPECT_EQ(activations(job.roles[0]).total.count() - ends.count(),
            layers * (34 * s * h + 5 * a * s * s));
}

}  // namespace
}  // namespace rehearse::activation_step_test
