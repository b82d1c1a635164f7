// What does not come out even, each with the arithmetic that its user gets to see.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "strategies/placement/placement.hpp"

namespace rehearse::placement_problems_test {
namespace {

std::vector<std::string> messages(const std::vector<KeyProblem>& problems) {
  std::vector<std::string> texts;
  for (const KeyProblem& problem : problems) texts.push_back(problem.message);
  return texts;
}
using Texts = std::vector<std::string>;

Texts placing(const Parallelism& p, std::size_t world) {
  return messages(placement_problems(p, world));
}

TEST(PlacementProblems, SayTheArithmetic) {
  EXPECT_EQ(placing({.tensor = 8, .pipeline = 2}, 24),
            Texts{"tp 8 × pp 2 × cp 1 = 16 does not divide world 24"});
  EXPECT_EQ(placing({.tensor = 4, .pipeline = 2, .data = 3}, 32),
            Texts{"dp 3 given, but world 32 / (tp 4 × pp 2 × cp 1) = 4"});
  EXPECT_EQ(placing({.context = 2, .expert = 3}, 8), Texts{"ep 3 does not divide dp 4 × cp 2 = 8"});
  EXPECT_EQ(placing({.zero_stage = 3, .zero_shard_ranks = 3}, 8),
            Texts{"zero_shard_ranks 3 does not divide dp 8 × cp 1 = 8"});
  EXPECT_EQ(placing({.zero_shard_ranks = 4}, 8),
            Texts{"zero_shard_ranks 4 needs zero_stage 1, 2 or 3, not 0"});
  EXPECT_EQ(placing({.sequence_parallel = true}, 8),
            Texts{"sequence_parallel splits activations over the tensor-parallel ranks: it needs "
                  "tp 2 or more, not 1"});
  EXPECT_EQ(placing({.overlap_param_gather = true}, 8).size(), 1u);
}

TEST(PlacementProblems, KnowOrders) {
  const auto of = [](const char* order) {
    return placing({.tensor = 2, .pipeline = 2, .order = order}, 16);
  };
  EXPECT_EQ(of("tp-cp-dp-ep-pp"), Texts{});
  EXPECT_EQ(of("tp-dp-pp"), Texts{});
  EXPECT_EQ(of("tp-xx-dp-pp"), Texts{"order 'tp-xx-dp-pp': unknown dimension 'xx'; write e.g. "
                                     "\"tp-cp-ep-dp-pp\""});
  EXPECT_EQ(of("tp-tp-dp-pp"), Texts{"order 'tp-tp-dp-pp' names tp 2 times"});
  EXPECT_EQ(of("tp-cp-ep"), (Texts{"order 'tp-cp-ep' leaves out dp, which is 4",
                                   "order 'tp-cp-ep' leaves out pp, which is 2"}));
  EXPECT_EQ(of("").size(), 1u);
  EXPECT_EQ(of("tp-dp-pp-").size(), 1u);
}

TEST(PlacementProblems, KnowSchedules) {
  EXPECT_EQ(placing({.pipeline = 4, .virtual_pipeline = 2}, 8),
            Texts{"vpp 2 needs an interleaved schedule (Interleaved1F1B, LoopedBFS, "
                  "InterleavedZeroBubble), not 1F1B"});
  EXPECT_EQ(placing({.pipeline = 4, .virtual_pipeline = 2, .schedule = "Interleaved1F1B"}, 8),
            Texts{});
  EXPECT_EQ(placing({.pipeline = 4, .virtual_pipeline = 3, .schedule = "ZBVZeroBubble"}, 8),
            Texts{"ZBVZeroBubble has 2 stages on each rank, not vpp 3"});
  EXPECT_EQ(placing({.schedule = "1B1F"}, 8),
            Texts{"unknown schedule '1B1F'; did you mean '1F1B'?"});
  EXPECT_EQ(stage_count({.pipeline = 4, .virtual_pipeline = 3, .schedule = "LoopedBFS"}), 12u);
  EXPECT_EQ(stage_count({.pipeline = 4, .schedule = "DualPipeV"}), 8u);
  EXPECT_EQ(placing({.pipeline = 4, .layers_per_stage = {8, 8, 8}}, 8),
            Texts{"layers_per_stage has 3 entries for pp 4 × vpp 1 = 4 stages"});
}

TEST(PlacementProblems, TellAllAtOnce) {
  const Parallelism p{.tensor = 3, .order = "tp-tp", .schedule = "x", .zero_shard_ranks = 2};
  EXPECT_EQ(placing(p, 8).size(), 4u);
  EXPECT_THROW(place_ranks(p, 8), InputError);
}

TEST(PlacementProblems, SurviveAnyNumbers) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1} << 20, SIZE_MAX}) {
    EXPECT_FALSE(placing({.tensor = n}, 8).empty());
    EXPECT_FALSE(placing({.pipeline = n}, 8).empty());
    EXPECT_FALSE(placing({.context = n}, 8).empty());
    EXPECT_FALSE(placing({.expert = n}, 8).empty());
    EXPECT_FALSE(placing({.tensor = n, .pipeline = n, .context = n}, 8).empty());
  }
  EXPECT_FALSE(placing({.virtual_pipeline = 0}, 8).empty());
  EXPECT_FALSE(placing({.zero_stage = 4}, 8).empty());
}

TEST(BatchProblems, SayTheArithmetic) {
  EXPECT_EQ(messages(batch_problems({.micro_batch_size = 3, .global_batch_size = 100}, 8)),
            Texts{"gbs 100 is no multiple of mbs 3 × dp 8 = 24"});
  const Training weak{.micro_batch_size = 4, .global_batch_size = 8, .scaling = Scaling::weak};
  EXPECT_EQ(messages(batch_problems(weak, 3)), Texts{});
  EXPECT_EQ(batch_of(weak, 3), (Batch{24, 2}));
  EXPECT_EQ(batch_of({.micro_batch_size = 2, .global_batch_size = 96}, 8), (Batch{96, 6}));
  EXPECT_EQ(batch_of({.micro_batch_size = 2}, 8), (Batch{16, 1}));
  EXPECT_EQ(messages(batch_problems(
                {.micro_batch_size = 3, .global_batch_size = 8, .scaling = Scaling::weak}, 2)),
            Texts{"gbs 8 of each data-parallel rank (scaling is weak) is no multiple of mbs 3"});
}

TEST(ModelProblems, SayTheArithmetic) {
  const auto of = [](const Parallelism& p, const SplitNumbers& model) {
    return messages(model_problems(p, model));
  };
  EXPECT_EQ(of({.pipeline = 16}, {.layers = 126}),
            Texts{"126 layers do not divide over pp 16 × vpp 1 = 16 stages; say how many each "
                  "gets: layers_per_stage"});
  EXPECT_EQ(of({.pipeline = 2, .layers_per_stage = {16, 14}}, {.layers = 32}),
            Texts{"layers_per_stage adds up to 30, but the model has 32 layers"});
  EXPECT_EQ(of({.tensor = 8}, {.heads = 12}), Texts{"12 attention heads do not divide by tp 8"});
  EXPECT_EQ(of({.tensor = 16}, {.heads = 32, .kv_heads = 8}), Texts{});
  EXPECT_EQ(of({.tensor = 6}, {.heads = 36, .kv_heads = 9}),
            Texts{"9 key-value heads and tp 6: neither divides the other"});
  EXPECT_EQ(of({.expert = 3}, {.experts = 8}), Texts{"8 experts do not divide by ep 3"});
  EXPECT_EQ(of({.expert = 2}, {}), Texts{"ep 2, but the model has no experts"});
  EXPECT_EQ(of({.context = 4}, {.seq_length = 1020}),
            Texts{"seq_length 1020 does not divide by 2 × cp 4 = 8"});
  EXPECT_EQ(of({.tensor = 8, .pipeline = 4}, {.layers = 32, .heads = 32, .intermediate = 14336}),
            Texts{});
}

}  // namespace
}  // namespace rehearse::placement_problems_test
