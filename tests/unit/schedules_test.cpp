// The table of schedules: names, what they refuse and why; what makes an order impossible; and how
// a schedule is drawn.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "strategies/schedules/check_schedule.hpp"
#include "strategies/schedules/draw_schedule.hpp"
#include "strategies/schedules/schedules.hpp"

namespace rehearse::schedules_test {
namespace {

std::string mistake(auto call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

std::string refused(std::string_view name, std::size_t p, std::size_t m, std::size_t v) {
  return mistake([&] { make_schedule(name, p, m, v); });
}

TEST(ScheduleTable, KnowsPyTorchsNamesInAnyCase) {
  for (const std::string_view name :
       {"GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble",
        "DualPipeV", "none", "ZBH1"})
    EXPECT_EQ(schedule_kind(name).name, name);
  EXPECT_EQ(schedule_kind("zb-h1").name, "ZBH1");
  EXPECT_EQ(schedule_kind("1f1b").name, "1F1B");
  EXPECT_EQ(schedule_kind("dualpipev").name, "DualPipeV");
}

TEST(ScheduleTable, SaysTheArithmeticOfWhatItRefuses) {
  EXPECT_EQ(refused("1F1C", 2, 2, 1), "error: unknown schedule '1F1C'; did you mean '1F1B'?");
  EXPECT_EQ(refused("Interleaved1F1B", 8, 12, 2),
            "error: schedule Interleaved1F1B: 8 ranks do not divide 12 micro-batches");
  EXPECT_EQ(refused("1F1B", 4, 8, 2),
            "error: schedule 1F1B: each rank holds 1 chunk, not 2; Interleaved1F1B holds several");
  EXPECT_EQ(refused("zbvzerobubble", 4, 8, 1),
            "error: schedule ZBVZeroBubble: each rank holds exactly 2 chunks, not 1");
  EXPECT_EQ(refused("DualPipeV", 4, 7, 2),
            "error: schedule DualPipeV: 4 ranks × 2 chunks = 8 stages need as many micro-batches, "
            "not 7");
  EXPECT_EQ(refused("InterleavedZeroBubble", 4, 13, 2),
            "error: schedule InterleavedZeroBubble: 13 micro-batches on 4 ranks are 3 rounds, "
            "which do not divide 13");
  EXPECT_EQ(refused("GPipe", 0, 1, 1), "error: schedule GPipe: a pipeline of 0 ranks does nothing");
  EXPECT_EQ(refused("GPipe", 1, 0, 1),
            "error: schedule GPipe: a step of 0 micro-batches does nothing");
  EXPECT_EQ(refused("none", 1, 1, 0), "error: schedule none: ranks with 0 chunks do nothing");
  EXPECT_EQ(refused("GPipe", 1u << 20, 1u << 20, 1),
            "error: schedule GPipe: 1048576 ranks × 1 chunks × 1048576 micro-batches are more than "
            "134217728");
}

TEST(ScheduleTable, WhatItDoesNotRefuseCanRun) {
  std::size_t made = 0;
  for (const ScheduleKind& kind : schedules())
    for (std::size_t p = 1; p <= 9; ++p)
      for (std::size_t m = 1; m <= 30; ++m)
        for (std::size_t v = 1; v <= 4; ++v) {
          if (refusal(kind, {p, m, v})) continue;
          const Schedule schedule = kind.make({p, m, v});
          EXPECT_EQ(mistake([&] { check_schedule(schedule); }), "nothing")
              << kind.name << " p " << p << " m " << m << " v " << v;
          ++made;
        }
  EXPECT_GT(made, 4000u);
}

// Two ranks, two micro-batches; each test spoils it in one way.
Schedule small() { return make_schedule("1F1B", 2, 2); }

std::string problems(const Schedule& schedule) {
  return mistake([&] { check_schedule(schedule); });
}

TEST(CheckSchedule, NamesWhatIsMissingTwiceOrOutOfOrder) {
  using enum ActionKind;
  EXPECT_EQ(problems(small()), "nothing");
  Schedule missing = small();
  missing.ranks[0].erase(missing.ranks[0].begin());  // 0F0
  missing.ranks[1].pop_back();                       // 1B1
  EXPECT_EQ(problems(missing),
            "error: schedule: stage 0 has no F of micro-batch 0\n"
            "error: schedule: stage 1 has no B, nor I and W, of micro-batch 1");
  Schedule twice = small();
  twice.ranks[0].push_back(Action{0, forward, 1});
  twice.ranks[0].push_back(Action{0, backward_weight, 1});
  EXPECT_EQ(problems(twice),
            "error: schedule: 0F1 for the second time\n"
            "error: schedule: 0W1 and 0B1: a backward is B, or I and W");
  Schedule early = small();
  std::swap(early.ranks[1][0], early.ranks[1][1]);
  EXPECT_EQ(problems(early), "error: schedule: 1B0 before 1F0");
  Schedule halves = make_schedule("ZBH1", 2, 2);
  halves.ranks[1].pop_back();
  EXPECT_EQ(problems(halves), "error: schedule: stage 1 has no W of micro-batch 1");
}

TEST(CheckSchedule, NamesTheWrongRankAndShape) {
  Schedule wrong = small();
  wrong.ranks[0].push_back(Action{1, ActionKind::forward, 0});
  wrong.ranks[0].push_back(Action{2, ActionKind::forward, 0});
  EXPECT_EQ(problems(wrong),
            "error: schedule: 1F0 is on rank 0, but stage 1 is on rank 1\n"
            "error: schedule: 2F0: there are 2 stages and 2 micro-batches");
  Schedule nobody = small();
  nobody.rank_of[1] = 7;
  EXPECT_EQ(problems(nobody), "error: schedule: stage 1 is on rank 7 of a pipeline of 2 ranks");
}

TEST(CheckSchedule, NamesTheCircleOfADeadlock) {
  using enum ActionKind;
  Schedule schedule = small();
  // Rank 0 wants 0's backward before it begins 1; rank 1 wants 1 before it sends 0 back.
  schedule.ranks[0] = {Action{0, forward, 0}, Action{0, backward, 0}, Action{0, forward, 1},
                       Action{0, backward, 1}};
  schedule.ranks[1] = {Action{1, forward, 0}, Action{1, forward, 1}, Action{1, backward, 0},
                       Action{1, backward, 1}};
  EXPECT_EQ(problems(schedule),
            "error: schedule: deadlock: rank 0 at 0B0 waits for 1B0, rank 1 at 1F1 waits for 0F1");
  Schedule alone{.stages = 2, .microbatches = 1, .ranks = {{}}, .rank_of = {0, 0}};
  alone.ranks[0] = {Action{1, forward, 0}, Action{0, forward, 0}, Action{1, backward, 0},
                    Action{0, backward, 0}};
  EXPECT_EQ(problems(alone), "error: schedule: deadlock: rank 0 at 1F0 waits for 0F0");
}

TEST(DrawSchedule, FourDevicesTwoMicrobatches) {
  EXPECT_EQ("\n" + draw_schedule(make_schedule("GPipe", 4, 2)), R"(
rank 0 │0F0│0F1│                                   │0B0    │0B1    │
rank 1     │1F0│1F1│                       │1B0    │1B1    │
rank 2         │2F0│2F1│           │2B0    │2B1    │
rank 3             │3F0│3F1│3B0    │3B1    │
15 steps, 60.0 % of them idle
)");
  EXPECT_EQ("\n" + draw_schedule(make_schedule("1F1B", 4, 2)), R"(
rank 0 │0F0│0F1│                               │0B0    │   │0B1    │
rank 1     │1F0│1F1│                   │1B0    │   │1B1    │
rank 2         │2F0│2F1│       │2B0    │   │2B1    │
rank 3             │3F0│3B0    │3F1│3B1    │
15 steps, 60.0 % of them idle
)");
  EXPECT_EQ("\n" + draw_schedule(make_schedule("ZBH1", 4, 2)), R"(
rank 0 │0F0│0F1│                   │0I0│0W0│0I1│0W1│
rank 1     │1F0│1F1│           │1I0│   │1I1│1W0│1W1│
rank 2         │2F0│2F1│   │2I0│   │2I1│2W0│2W1│
rank 3             │3F0│3I0│3F1│3I1│3W0│3W1│
11 steps, 45.5 % of them idle
)");
}

TEST(DrawSchedule, ALetterForEachStepWhereLabelsDoNotFit) {
  EXPECT_EQ("\n" + draw_schedule(make_schedule("1F1B", 2, 4), {1, 1, 1}, 40), R"(
rank 0 FF..BBFBBFBB.BB
rank 1 .FBBFBBFBBFBB..
15 steps, 20.0 % of them idle
)");
  EXPECT_EQ("\n" + draw_schedule(make_schedule("1F1B", 2, 4), {1, 1, 1}, 17), R"(
rank 0 FF..BBFBB…
rank 1 .FBBFBBFB…
15 steps, 20.0 % of them idle
)");
}

}  // namespace
}  // namespace rehearse::schedules_test
