// Ring attention: blocks of keys and values travel beside the kernels of the blocks before them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::ring_attention_test {
namespace {

constexpr double rate = 1e12;  // FLOP/s
constexpr auto context = static_cast<std::size_t>(Dimension::context);

/// Attention takes its FLOPs at a plain rate, everything else no time at all.
class AttentionCost final : public CostModel {
 public:
  Seconds compute(const Compute& work, const Accelerator&) const override {
    const bool fused = work.gemm.m == 0 && work.math != Precision::fp32 && work.flops.count() > 0;
    return fused ? work.flops / FlopsPerSecond{rate} : Seconds{0};
  }
};

struct Ring {
  std::int64_t tokens = 1024;  // of a sequence
  std::size_t ranks = 4;
  bool causal = false;
  double gigabytes_per_second = 10;
  ContextExchange exchange = ContextExchange::ring;
  Recompute recompute = Recompute::none;
  std::size_t microbatches = 1;

  static constexpr std::int64_t hidden = 64;

  Workload workload() const {
    Workload model = transformer_workload("small", "gpt",
                                          {.hidden = hidden,
                                           .layers = 1,
                                           .heads = 4,
                                           .kv_heads = 4,
                                           .head_size = 16,
                                           .ffn = 256,
                                           .vocabulary = 512,
                                           .positions = tokens,
                                           .causal = causal,
                                           .tied = false});
    model.seq_length = tokens;
    return model;
  }
  Scenario scenario() const {
    Scenario scenario;
    scenario.parallelism.context = ranks;
    scenario.parallelism.context_exchange = exchange;
    scenario.parallelism.recompute = recompute;
    scenario.parallelism.zero_stage = 0;
    scenario.training.global_batch_size = microbatches;
    scenario.training.clip_grad = 0;
    return scenario;
  }
  Topology machine() const {
    return calm_star(ranks, {BytesPerSecond{gigabytes_per_second * 1e9}, Time{}});
  }
  Prediction predict(const StepPredictor::Detail& detail = {}) const {
    const Topology star = machine();
    const AttentionCost cost;
    return StepPredictor(star, cost).predict(scenario(), workload(), detail).prediction;
  }

  /// Keys and values of a block, in bf16; of one rank.
  Bytes block() const { return Bytes{2 * 2 * tokens / static_cast<std::int64_t>(ranks) * hidden}; }
  /// Two products of a block with every query here, half of them under a causal mask.
  Time kernel(int products) const {
    const double block = static_cast<double>(tokens) / static_cast<double>(ranks);
    const double flops = 2.0 * products * block * block * hidden * (causal ? 0.5 : 1);
    return Time::round(Seconds{flops / rate});
  }
  Time hop(std::int64_t blocks) const {
    return Time::round(Bytes{blocks * block().count()} /
                       (BytesPerSecond{gigabytes_per_second * 1e9}));
  }
  /// Forward: a hop beside each block but the last. Backward: keys and values likewise, gradients
  /// one block later, and home at the end.
  Time expected() const {
    const auto hops = static_cast<std::int64_t>(ranks) - 1;
    const Time forward = hops * std::max(kernel(2), hop(1)) + kernel(2);
    const Time backward =
        2 * std::max(kernel(5), hop(1)) + (hops - 1) * std::max(kernel(5), hop(2)) + hop(1);
    return forward + backward;
  }
};

Time exposed(const Prediction& told) { return told.roles.front().time.exposed[context]; }
Time data(const Prediction& told) {
  return told.roles.front().time.exposed[static_cast<std::size_t>(Dimension::data)];
}

TEST(RingAttention, BlocksTravelBesideTheKernelsBeforeThem) {
  for (const double gigabytes : {1.0, 5.0, 9.0, 20.0, 40.0, 100.0})
    for (const std::size_t ranks : {2, 4, 8})
      for (const bool causal : {false, true}) {
        const Ring ring{.ranks = ranks, .causal = causal, .gigabytes_per_second = gigabytes};
        const Prediction told = ring.predict();
        EXPECT_EQ(told.step - data(told), ring.expected())
            << gigabytes << " GB/s, " << ranks << " ranks" << (causal ? ", causal" : "");
        ASSERT_EQ(told.roles.size(), 1u) << "zig-zag: all ranks have equal work";
      }
}

// Liu et al. 2023, section 3: of a block of c tokens the two products take 4dc²/F, its keys and
// values 4cd/B in 16 bits. So the forward pass hides them when c ≥ F/B; a causal mask halves the
// work, and doubles the c that is needed.
TEST(RingAttention, HidesItsCommunicationWhenBlocksAreLongEnough) {
  for (const bool causal : {false, true}) {
    const std::int64_t enough = causal ? 200 : 100;  // 1e12 FLOP/s over 10 GB/s, in blocks of c
    for (const std::int64_t c : {enough / 2, enough - 10, enough, enough + 10, 4 * enough}) {
      Ring ring{.tokens = 4 * c, .causal = causal};
      const Time left = exposed(ring.predict()) - ring.hop(1);  // but for the last hop home
      const Time backward = 2 * std::max(Time{}, ring.hop(1) - ring.kernel(5)) +
                            2 * std::max(Time{}, ring.hop(2) - ring.kernel(5));
      if (c >= enough)
        EXPECT_EQ(left, backward) << c << " tokens: the forward pass hides its hops";
      else
        EXPECT_EQ(left, backward + 3 * (ring.hop(1) - ring.kernel(2))) << c << " tokens";
    }
    EXPECT_EQ(Ring({.tokens = 4 * enough, .causal = causal}).kernel(2),
              Ring({.tokens = 4 * enough}).hop(1));
  }
}

// As many keys and values come in as a gather would bring, block by block.
TEST(RingAttention, MovesWhatAGatherMoves) {
  Ring ring{.gigabytes_per_second = 1};
  const Prediction told = ring.predict();
  const std::int64_t hops = 3 + 3 + 4;  // of keys and values twice, of gradients
  EXPECT_EQ(told.roles.front().communication[context], hops * ring.hop(1));
  ring.exchange = ContextExchange::all_gather;
  const Prediction gathered = ring.predict();
  EXPECT_EQ(exposed(gathered), gathered.roles.front().communication[context]) << "nothing beside";
  EXPECT_GT(gathered.step, told.step);
}

// Recomputation of attention sends the blocks round once more.
TEST(RingAttention, IsRecomputedWhole) {
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    Ring ring{.gigabytes_per_second = 5};
    const Time plain = ring.predict().step;
    ring.recompute = recompute;
    EXPECT_EQ(ring.predict().step - plain,
              3 * std::max(ring.kernel(2), ring.hop(1)) + ring.kernel(2));
  }
}

TEST(RingAttention, InBlocksAndUnfoldedToo) {
  for (const double gigabytes : {1.0, 9.0, 40.0}) {
    const Ring ring{.gigabytes_per_second = gigabytes, .microbatches = 3};
    const Prediction kernels = ring.predict();
    for (const StepPredictor::Detail detail :
         {StepPredictor::Detail{.grain = Grain::blocks}, StepPredictor::Detail{.fold = false}}) {
      const Prediction other = ring.predict(detail);
      EXPECT_EQ(other.step, kernels.step);
      EXPECT_EQ(other.mean, kernels.mean);
      EXPECT_EQ(other.roles[0].communication, kernels.roles[0].communication);
    }
  }
}

}  // namespace
}  // namespace rehearse::ring_attention_test
