// The parts of a training step by themselves: buckets, tapes, steady rounds, and the accounts of
// time and memory, on steps written by hand.
#include <gtest/gtest.h>

#include "strategies/layers/tape.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/predict/account.hpp"
#include "strategies/predict/steady.hpp"

namespace rehearse::step_parts_test {
namespace {

// --- Buckets.

TEST(Buckets, FillFromTheLastLayer) {
  const std::vector<Bytes> layers{30_B, 20_B, 50_B};
  // The last layer's 50 bytes: 10, then 25, then 15 of the next 25, which layer 1 completes.
  const std::vector<Bucket> expected{{10_B, 2}, {25_B, 2}, {25_B, 1}, {25_B, 0}, {15_B, 0}};
  EXPECT_EQ(fill_buckets(layers, {10_B, 25_B}), expected);
}

TEST(Buckets, WithoutAFirstSizeTheyAreAllAlike) {
  const std::vector<Bytes> layers{30_B, 20_B, 50_B};
  const std::vector<Bucket> expected{{50_B, 2}, {50_B, 0}};
  EXPECT_EQ(fill_buckets(layers, {0_B, 50_B}), expected);
  EXPECT_EQ(fill_buckets(layers, {1'000_B, 50_B}), expected) << "no bucket is longer than `size`";
}

TEST(Buckets, OneForAllWhenItIsLargeEnough) {
  const std::vector<Bytes> layers{30_B, 0_B, 50_B};
  EXPECT_EQ(fill_buckets(layers, {0_B, 1'000_B}), (std::vector<Bucket>{{80_B, 0}}));
  EXPECT_TRUE(fill_buckets({}, {0_B, 1'000_B}).empty());
  const std::vector<Bytes> empty{0_B, 0_B};
  EXPECT_TRUE(fill_buckets(empty, {1_B, 1'000_B}).empty());
}

TEST(Buckets, AreOneWhereNothingLeavesEarlyUnlessTheScenarioSaysOtherwise) {
  const std::vector<Bytes> layers{30_GiB, 20_GiB, 50_GiB};
  Parallelism how;
  EXPECT_EQ(fill_buckets(layers, bucket_sizes(how)), (std::vector<Bucket>{{100_GiB, 0}}));
  how.zero_stage = 1;
  EXPECT_EQ(fill_buckets(layers, bucket_sizes(how)).size(), 1u);
  how.zero_stage = 2;
  EXPECT_EQ(bucket_sizes(how), (BucketSizes{1_MiB, 25_MiB}));
  how = {.overlap_grad_reduce = true};
  EXPECT_EQ(bucket_sizes(how), (BucketSizes{1_MiB, 25_MiB}));
  how.bucket_size = 100_MiB;
  EXPECT_EQ(bucket_sizes(how), (BucketSizes{1_MiB, 100_MiB}));
  how.overlap_grad_reduce = false;
  EXPECT_EQ(bucket_sizes(how), (BucketSizes{0_B, 100_MiB}));
}

TEST(Buckets, ALayerWithoutParametersCompletesNone) {
  const std::vector<Bytes> layers{0_B, 30_B, 50_B};
  EXPECT_EQ(fill_buckets(layers, {0_B, 60_B}), (std::vector<Bucket>{{60_B, 1}, {20_B, 1}}));
}

// --- Tapes.

Piece piece(std::string name, bool of_weights = false, bool recomputed = false) {
  return {.name = std::move(name),
          .work = Compute{},
          .of_weights = of_weights,
          .recomputed = recomputed};
}

LayerPieces layer(const std::string& name, bool recomputes) {
  LayerPieces pieces{.name = name, .recomputes = recomputes};
  pieces.forward = {piece(name + ".f"), piece(name + ".s", false, true)};
  pieces.backward = {piece(name + ".i"), piece(name + ".w", true)};
  return pieces;
}

class Tapes : public testing::Test {
 protected:
  const LayerPieces a_ = layer("a", true), b_ = layer("b", false);
  PieceList pieces_;
  const std::vector<ListedLayer> layers_{pieces_.add(a_), pieces_.add(b_)};

  std::string text(const Tape& tape) const {
    std::string out;
    std::size_t layer = 0;
    for (std::size_t i = 0; i < tape.steps.size(); ++i) {
      out += pieces_[tape.steps[i].piece].name;
      if (tape.steps[i].phase == Phase::recompute) out += "'";
      const bool ends = i + 1 == tape.layer_end[layer];
      out += ends ? " | " : " ";
      if (ends) ++layer;
    }
    EXPECT_EQ(layer, tape.layer_end.size());
    return out;
  }
};

TEST_F(Tapes, GoForwardAndBack) {
  EXPECT_EQ(text(forward_tape(layers_)), "a.f a.s | b.f b.s | ");
  EXPECT_EQ(text(backward_tape(layers_, BackwardPart::all, Recompute::none)),
            "b.i b.w | a.i a.w | ");
}

TEST_F(Tapes, InHalves) {
  EXPECT_EQ(text(backward_tape(layers_, BackwardPart::inputs, Recompute::none)), "b.i | a.i | ");
  EXPECT_EQ(text(backward_tape(layers_, BackwardPart::weights, Recompute::none)), "b.w | a.w | ");
  const Tape weights = backward_tape(layers_, BackwardPart::weights, Recompute::full);
  EXPECT_EQ(text(weights), "b.w | a.w | ") << "what was recomputed for the inputs is still there";
  EXPECT_EQ(weights.steps.front().phase, Phase::backward_weight);
}

TEST_F(Tapes, RecomputeBeforeTheLayersBackwardPass) {
  EXPECT_EQ(text(backward_tape(layers_, BackwardPart::all, Recompute::selective)),
            "b.s' b.i b.w | a.s' a.i a.w | ");
  EXPECT_EQ(text(backward_tape(layers_, BackwardPart::inputs, Recompute::selective)),
            "b.s' b.i | a.s' a.i | ");
}

// What an exchange runs beside is counted among the steps of the very tape: a half without it
// waits.
TEST_F(Tapes, ExchangesRunBesideWhatIsThere) {
  LayerPieces split{.name = "split"};
  const auto exchange = [](std::string name, bool of_weights, std::uint8_t beside) {
    return Piece{
        .name = std::move(name), .work = Exchange{}, .of_weights = of_weights, .beside = beside};
  };
  split.backward = {exchange("gather", true, 1), piece("dgrad"),      exchange("sum", false, 2),
                    piece("wgrad", true),        piece("bias", true), piece("norm")};
  const std::vector<ListedLayer> layers{pieces_.add(split)};
  const auto beside = [&](BackwardPart part) {
    std::vector<int> counts;
    for (const TapeStep& step : backward_tape(layers, part, Recompute::none).steps)
      if (std::holds_alternative<Exchange>(pieces_[step.piece].work)) counts.push_back(step.beside);
    return counts;
  };
  EXPECT_EQ(beside(BackwardPart::all), (std::vector<int>{1, 2}));
  EXPECT_EQ(beside(BackwardPart::inputs), (std::vector<int>{0})) << "the sum, and no weights";
  EXPECT_EQ(beside(BackwardPart::weights), (std::vector<int>{0})) << "the gather, and no inputs";
}

// A layer that full recomputation does not apply to keeps all its activations.
TEST_F(Tapes, FullRecomputationIsOfLayersThatAllowIt) {
  EXPECT_EQ(text(backward_tape(layers_, BackwardPart::all, Recompute::full)),
            "b.i b.w | a.f' a.s' a.i a.w | ");
}

// --- Accounts: one rank computes, another sends to it.

class Ledger : public testing::Test {
 protected:
  void compute(Rank rank, std::int64_t begin, std::int64_t end, std::vector<OpId> after = {}) {
    step_.program.add_compute(rank, Stream::compute, {}, {}, after);
    note({}, begin, end);
  }
  OpId message(Dimension dimension, Rank from, Rank to, std::int64_t begin, std::int64_t end) {
    const ConnectionId way = step_.program.connect({.source = from, .target = to});
    const OpId id =
        step_.program.add_transfer(comm_lane(static_cast<std::size_t>(dimension)), {}, {way}, {});
    note({.communicates = true, .dimension = dimension}, begin, end);
    return id;
  }
  void note(const OpTag& tag, std::int64_t begin, std::int64_t end) {
    step_.tags.push_back(tag);
    timeline_.spans.push_back({at(begin), at(end)});
    timeline_.makespan = std::max(timeline_.makespan, at(end));
  }
  void roles(std::size_t count) {
    for (std::size_t r = 0; r < count; ++r) step_.roles.push_back({.rank = static_cast<Rank>(r)});
  }
  static Time at(std::int64_t ps) { return Time::picoseconds(ps); }
  static Time exposed(const TimeUse& use, Dimension dimension) {
    return use.exposed[static_cast<std::size_t>(dimension)];
  }

  StepProgram step_;
  Timeline timeline_;
};

TEST_F(Ledger, EveryMomentIsOneThing) {
  //   rank 0  compute ████░░░░████        data ░░████████      0 4 8 12, 2 … 10
  roles(2);
  compute(Rank{0}, 0, 4);
  message(Dimension::data, Rank{0}, Rank{1}, 2, 6);
  compute(Rank{0}, 8, 12);
  const Accounts accounts(step_, timeline_);
  const TimeUse use = accounts.time_use(0, {});
  EXPECT_EQ(use.compute, at(8));
  EXPECT_EQ(exposed(use, Dimension::data), at(2)) << "from 4 to 6";
  EXPECT_EQ(use.bubble, at(2)) << "from 6 to 8";
  EXPECT_EQ(accounts.communication(0, {})[static_cast<std::size_t>(Dimension::data)], at(4));
  const TimeUse other = accounts.time_use(1, {});
  EXPECT_EQ(exposed(other, Dimension::data), at(4)) << "the target communicates too";
  EXPECT_EQ(other.bubble, at(8));
}

TEST_F(Ledger, WhatTheKernelWaitsForCountsFirst) {
  roles(1);
  compute(Rank{0}, 0, 2);
  const OpId activations = message(Dimension::pipeline, Rank{0}, Rank{0}, 2, 6);
  message(Dimension::data, Rank{0}, Rank{0}, 1, 10);
  compute(Rank{0}, 6, 8, {activations});
  const TimeUse use = Accounts(step_, timeline_).time_use(0, {});
  EXPECT_EQ(exposed(use, Dimension::pipeline), at(4)) << "the kernel at 6 waited for it";
  EXPECT_EQ(exposed(use, Dimension::data), at(2)) << "from 8 to the end";
  EXPECT_EQ(use.bubble, Time{});
}

TEST_F(Ledger, ThenWhatEndsLast) {
  roles(1);
  message(Dimension::pipeline, Rank{0}, Rank{0}, 0, 6);
  message(Dimension::data, Rank{0}, Rank{0}, 2, 9);
  compute(Rank{0}, 10, 11);
  const TimeUse use = Accounts(step_, timeline_).time_use(0, {});
  EXPECT_EQ(exposed(use, Dimension::data), at(7));
  EXPECT_EQ(exposed(use, Dimension::pipeline), at(2));
  EXPECT_EQ(use.bubble, at(1));
}

// Kernels of a layer wait for its exchange whatever else arrives: in a block it is part of them.
TEST_F(Ledger, ExchangesWithinLayersCountBeforeAll) {
  roles(1);
  message(Dimension::tensor, Rank{0}, Rank{0}, 0, 6);
  const OpId activations = message(Dimension::pipeline, Rank{0}, Rank{0}, 2, 9);
  compute(Rank{0}, 9, 11, {activations});
  const TimeUse use = Accounts(step_, timeline_).time_use(0, {});
  EXPECT_EQ(exposed(use, Dimension::tensor), at(6));
  EXPECT_EQ(exposed(use, Dimension::pipeline), at(3));
}

TEST_F(Ledger, WindowsAddUp) {
  roles(1);
  compute(Rank{0}, 0, 5);
  message(Dimension::pipeline, Rank{0}, Rank{0}, 3, 9);
  compute(Rank{0}, 11, 14);
  const Accounts accounts(step_, timeline_);
  const TimeUse whole = accounts.time_use(0, {});
  for (const std::int64_t cut : {1, 4, 5, 7, 9, 10, 12}) {
    const TimeUse a = accounts.time_use(0, {Time{}, at(cut)});
    const TimeUse b = accounts.time_use(0, {at(cut), at(14)});
    EXPECT_EQ(a.compute + b.compute, whole.compute) << cut;
    EXPECT_EQ(a.bubble + b.bubble, whole.bubble) << cut;
    EXPECT_EQ(exposed(a, Dimension::pipeline) + exposed(b, Dimension::pipeline), at(4)) << cut;
  }
}

TEST_F(Ledger, ABlockSaysHowMuchOfItIsCommunication) {
  roles(1);
  compute(Rank{0}, 0, 10);
  MergedOp merged{.op = OpId{0}};
  merged.exchanged[static_cast<std::size_t>(Dimension::tensor)] = at(3);
  step_.merged.push_back(merged);
  const Accounts accounts(step_, timeline_);
  EXPECT_EQ(accounts.time_use(0, {}).compute, at(7));
  EXPECT_EQ(exposed(accounts.time_use(0, {}), Dimension::tensor), at(3));
  EXPECT_EQ(accounts.communication(0, {})[static_cast<std::size_t>(Dimension::tensor)], at(3));
}

TEST_F(Ledger, MemoryPeaksWhenMostIsThere) {
  roles(1);
  compute(Rank{0}, 0, 4);
  compute(Rank{0}, 4, 8);
  Role& role = step_.roles.front();
  role.at_rest[static_cast<std::size_t>(MemoryKind::parameters)] = 100_B;
  role.changes = {{OpId{0}, false, MemoryKind::mlp, 30_B},
                  {OpId{1}, false, MemoryKind::attention, 50_B},
                  {OpId{0}, true, MemoryKind::mlp, Bytes{-30}},
                  {OpId{1}, true, MemoryKind::attention, Bytes{-50}}};
  const MemoryPeak peak = memory_peak(timeline_, role);
  EXPECT_EQ(peak.total, 150_B) << "what goes at 4 goes before what comes";
  EXPECT_EQ(peak.when, at(4));
  EXPECT_EQ(peak.use[static_cast<std::size_t>(MemoryKind::mlp)], 0_B);
  EXPECT_EQ(memory_peak(timeline_, {.at_rest = role.at_rest}).total, 100_B);
}

// --- Steady rounds: one rank, F and B in turn.

class Rounds : public testing::Test {
 protected:
  /// A round of F and B for each of these, with that long a pause before it.
  void run(const std::vector<std::int64_t>& pauses) {
    std::int64_t now = 0;
    step_.actions.resize(1);
    for (std::uint32_t m = 0; m < pauses.size(); ++m) {
      now += pauses[m];
      for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
        const auto id = static_cast<OpId>(timeline_.spans.size());
        timeline_.spans.push_back({Time::picoseconds(now), Time::picoseconds(now + 5)});
        step_.actions[0].push_back({{0, kind, m}, id, static_cast<OpId>(index(id) + 1)});
        now += 5;
      }
    }
  }
  StepProgram step_;
  Timeline timeline_;
};

TEST_F(Rounds, ThatRepeatAreFound) {
  run({7, 3, 0, 0, 0, 0, 0, 0, 0});
  const auto steady = find_steady_state(step_, timeline_, 1).state;
  ASSERT_TRUE(steady);
  EXPECT_EQ(steady->period, Time::picoseconds(10));
  ASSERT_EQ(steady->rounds.size(), 1u);
  EXPECT_EQ(steady->rounds[0].end - steady->rounds[0].begin, 2u);
}

TEST_F(Rounds, ThatDoNotAreNot) {
  run({0, 1, 0, 1, 0, 1, 0, 1, 0});
  EXPECT_FALSE(find_steady_state(step_, timeline_, 1).state) << "every second one repeats";
}

TEST_F(Rounds, TooFewAreNot) {
  run({0, 0, 0});
  EXPECT_FALSE(find_steady_state(step_, timeline_, 1).state);
}

}  // namespace
}  // namespace rehearse::step_parts_test
