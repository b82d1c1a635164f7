// Pipeline schedules against the formulas of their papers, exactly: T of a step whose stages are
// all alike and whose communication is free, and what each rank keeps in memory.
#include <gtest/gtest.h>

#include "strategies/schedules/check_schedule.hpp"
#include "strategies/schedules/schedules.hpp"
#include "tests/support/max_plus.hpp"

namespace rehearse::schedules_test {
namespace {

// F, I, W; B is I + W. Odd ones, so that no wrong formula is right by chance.
constexpr StageTimes unit{1, 1, 1};
constexpr StageTimes all_times[]{unit, {3, 4, 2}, {5, 5, 1}, {7, 8, 7}};

/// Calls check(p, m, times) over small pipelines.
template <class Check>
void over_shapes(Check check) {
  for (const std::int64_t p : {1, 2, 3, 4, 8})
    for (const std::int64_t m : {1, 2, 3, 4, 7, 8, 16})
      for (const StageTimes& times : all_times) {
        SCOPED_TRACE(testing::Message()
                     << "p " << p << " m " << m << " F " << times.forward << " I "
                     << times.backward_input << " W " << times.backward_weight);
        check(p, m, times);
      }
}

Schedule made(std::string_view name, std::int64_t p, std::int64_t m, std::int64_t v = 1) {
  Schedule schedule = make_schedule(name, static_cast<std::size_t>(p), static_cast<std::size_t>(m),
                                    static_cast<std::size_t>(v));
  check_schedule(schedule);
  return schedule;
}

std::int64_t whole(const StageTimes& t) { return t.forward + t.backward_input + t.backward_weight; }

TEST(Schedules, WithoutAPipelineOneRankWorksAtATime) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    for (const std::int64_t v : {1, 2, 3})
      EXPECT_EQ(evaluate(made("none", p, m, v), t).makespan, m * p * v * whole(t)) << v;
  });
}

// Huang et al. 2019: (p-1)/(m+p-1) of the step is bubble, for GPipe and for 1F1B.
TEST(Schedules, GPipeAndOneFOneBTakeTheSameTime) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    for (const std::string_view name : {"GPipe", "1F1B"}) {
      const Evaluation e = evaluate(made(name, p, m), t);
      EXPECT_EQ(e.makespan, (m + p - 1) * whole(t)) << name;
      for (const std::int64_t busy : e.busy) {
        EXPECT_EQ(busy, m * whole(t)) << name;
        EXPECT_EQ((e.makespan - busy) * (m + p - 1), (p - 1) * e.makespan) << name;
      }
    }
  });
}

TEST(Schedules, GPipeKeepsAllMicrobatchesOneFOneBAtMostP) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    const Evaluation gpipe = evaluate(made("GPipe", p, m), t);
    const Evaluation one_f_one_b = evaluate(made("1F1B", p, m), t);
    for (std::int64_t r = 0; r < p; ++r) {
      EXPECT_EQ(gpipe.in_flight[static_cast<std::size_t>(r)], m);
      EXPECT_EQ(one_f_one_b.in_flight[static_cast<std::size_t>(r)], std::min(m, p - r));
    }
  });
}

// Narayanan et al. 2021, section 2.2.2: with the times of a chunk, a v-th of a rank's, the bubble
// is (p-1)(F + B)/v.
TEST(Schedules, InterleavingDividesTheBubble) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    if (m % p != 0) return;
    for (const std::int64_t v : {1, 2, 3, 4})
      EXPECT_EQ(evaluate(made("Interleaved1F1B", p, m, v), t).makespan,
                m * v * whole(t) + (p - 1) * whole(t))
          << v;
  });
}

// Qi et al. 2023, table 2, for m of at least p.
TEST(Schedules, ZbH1FillsTheBubbleWithWeights) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    if (m < p) return;
    const Evaluation e = evaluate(made("ZBH1", p, m), t);
    EXPECT_EQ(e.makespan,
              m * whole(t) + (p - 1) * (t.forward + t.backward_input - t.backward_weight));
    for (const std::int64_t kept : e.in_flight) EXPECT_EQ(kept, p);
  });
}

// The same over v chunks, in the times of a chunk: ZB-H1's bubble divided by v.
TEST(Schedules, InterleavedZeroBubbleDividesZbH1s) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    if (m < p || m % p != 0) return;
    for (const std::int64_t v : {1, 2, 3})
      EXPECT_EQ(evaluate(made("InterleavedZeroBubble", p, m, v), t).makespan,
                m * v * whole(t) + (p - 1) * (t.forward + t.backward_input - t.backward_weight))
          << v;
  });
}

// Lamy-Poirier 2022: filled and drained by chunks, once each.
TEST(Schedules, LoopedBreadthFirstDividesTheBubbleToo) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    if (m < p) return;
    for (const std::int64_t v : {1, 2, 3}) {
      const Evaluation e = evaluate(made("LoopedBFS", p, m, v), t);
      EXPECT_EQ(e.makespan, m * v * whole(t) + (p - 1) * whole(t)) << v;
      for (const std::int64_t kept : e.in_flight) EXPECT_EQ(kept, m * v) << v;
    }
  });
}

// Qi et al. 2023, section 6: with F = I = W no rank pauses between its first action and its last,
// in the memory of 1F1B's first rank: 2p chunks of half a rank.
TEST(Schedules, ZbvHasNoBubble) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    if (m < 2 * p - 1) return;
    const Evaluation e = evaluate(made("ZBVZeroBubble", p, m, 2), unit);
    for (std::size_t r = 0; r < e.busy.size(); ++r) {
      EXPECT_EQ(e.last[r] - e.first[r], e.busy[r]) << r;
      EXPECT_EQ(e.first[r], static_cast<std::int64_t>(r));
      EXPECT_LE(e.in_flight[r], 2 * p);
    }
    EXPECT_EQ(e.in_flight[0], std::min(2 * m, 2 * p));
    // Unequal times leave less than 1F1B would, whose bubble is (p-1)(F + I + W) of whole ranks.
    const std::int64_t unequal = evaluate(made("ZBVZeroBubble", p, m, 2), t).makespan;
    EXPECT_LE(unequal, 2 * m * whole(t) + 2 * (p - 1) * whole(t));
  });
}

// DeepSeek's table says (p-1)(F&B + B - 3W) for pairs that hand over at their end; a forward that
// hands over at its own end saves an I. F&B = F + B, and F = I as there.
TEST(Schedules, DualPipeVAsInDeepSeeksTable) {
  for (const std::int64_t p : {1, 2, 3, 4, 8})
    for (const std::int64_t m : {2 * p, 2 * p + 1, 5 * p})
      for (const StageTimes& t : {unit, StageTimes{4, 4, 3}, StageTimes{5, 5, 1}}) {
        const Evaluation e = evaluate(made("DualPipeV", p, m, 2), t);
        const std::int64_t full = t.backward_input + t.backward_weight;
        const std::int64_t pairs = t.forward + full + full - 3 * t.backward_weight;
        EXPECT_EQ(e.makespan, 2 * m * whole(t) + (p - 1) * (pairs - t.backward_input));
        for (const std::int64_t kept : e.in_flight) EXPECT_LE(kept, 2 * p + 1);
      }
}

TEST(Schedules, WalkEqualsMaxPlus) {
  over_shapes([](std::int64_t p, std::int64_t m, const StageTimes& t) {
    for (const ScheduleKind& kind : schedules()) {
      const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
      const PipelineShape shape{size(p), size(m), kind.chunks == 0 ? 2 : kind.chunks};
      if (refusal(kind, shape)) continue;
      const Schedule schedule = kind.make(shape);
      const Evaluation slow = evaluate(schedule, t);
      const ScheduleTimes fast = step_times(schedule, t);
      ASSERT_TRUE(fast.complete) << kind.name;
      EXPECT_EQ(fast.makespan, slow.makespan) << kind.name;
      for (std::size_t r = 0; r < shape.ranks; ++r)
        for (std::size_t c = 0; c < schedule.ranks[r].size(); ++c)
          ASSERT_EQ(fast.begin[r][c], slow.begin.at(*schedule.ranks[r][c])) << kind.name;
    }
  });
}

}  // namespace
}  // namespace rehearse::schedules_test
