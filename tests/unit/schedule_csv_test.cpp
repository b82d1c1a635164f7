// PyTorch's schedule files: what is read, what comes back, and one line for every mistake.
#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "strategies/schedules/schedule_csv.hpp"
#include "strategies/schedules/schedules.hpp"
#include "strategies/schedules/step_times.hpp"

namespace rehearse::schedule_csv_test {
namespace {

std::string mistakes(std::string_view text) {
  try {
    parse_schedule_csv(text, "s.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

constexpr std::string_view good =
    "0F0,0F1,0B0,0B1\n"
    "1F0,1B0,1F1,1B1\n";

TEST(ScheduleCsv, ComesBackEqualFromBothFormats) {
  for (const ScheduleKind& kind : schedules()) {
    const PipelineShape shape{3, 6, kind.chunks == 0 ? 2 : kind.chunks};
    const Schedule schedule = kind.make(shape), drawing = with_idle_steps(schedule);
    EXPECT_EQ(parse_schedule_csv(write_schedule_csv(schedule), "s"), schedule) << kind.name;
    EXPECT_EQ(parse_schedule_csv(write_schedule_csv(drawing), "s"), drawing) << kind.name;
    for (const Schedule& any : {schedule, drawing})
      EXPECT_EQ(parse_schedule_csv(write_schedule_csv(any, CsvFormat::compute_comms), "s"),
                schedule)
          << kind.name;
  }
}

TEST(ScheduleCsv, IdleStepsAreEmptyCells) {
  EXPECT_EQ(write_schedule_csv(with_idle_steps(make_schedule("1F1B", 2, 2))),
            "0F0,0F1,,,0B0,,,0B1\n"
            ",1F0,1B0,,1F1,1B1\n");
}

TEST(ScheduleCsv, TakesWhatSpreadsheetsMakeOfIt) {
  const Schedule plain = parse_schedule_csv(good, "s");
  EXPECT_EQ(plain, make_schedule("1F1B", 2, 2));
  EXPECT_EQ(parse_schedule_csv("\xef\xbb\xbf"
                               "0F0, 0F1 ,\"0B0\",0B1\r\n1F0,1B0,1F1,1B1\r\n\r\n",
                               "s"),
            plain);
}

TEST(ScheduleCsv, PairsAreTheirActionsInOrder) {
  const Schedule schedule = parse_schedule_csv("(0F0;0B0)OVERLAP_F_B\n", "s");
  EXPECT_EQ(schedule, make_schedule("GPipe", 1, 1));
}

TEST(ScheduleCsv, EveryBadCellHasItsLine) {
  EXPECT_EQ(mistakes("0F0,F1,0X0\n0f1, 0SEND_G1,0B\n0F99999999999,0UNSHARD3,1RESHARDED\n"),
            "s.csv:1:5: error: 'F1' is no action: write [stage][action][microbatch], e.g. 2F0\n"
            "s.csv:1:8: error: unknown action 'X' in '0X0'; compute is F, B, I or W\n"
            "s.csv:2:1: error: unknown action 'f' in '0f1'; did you mean 'F'?\n"
            "s.csv:2:6: error: unknown action 'SEND_G' in '0SEND_G1'; did you mean 'SEND_F'?\n"
            "s.csv:2:15: error: '0B' names no micro-batch: write e.g. 0B0\n"
            "s.csv:3:1: error: a number in '0F99999999999' is too large\n"
            "s.csv:3:15: error: '0UNSHARD3' names a micro-batch: UNSHARD concerns the whole "
            "stage\n"
            "s.csv:3:25: error: unknown action 'RESHARDED' in '1RESHARDED'; did you mean "
            "'RESHARD'?");
  EXPECT_EQ(mistakes("(0F0;0B0)OVERLAP\n"),
            "s.csv:1:1: error: '(0F0;0B0)OVERLAP' is no pair: write e.g. (0F3;3B1)OVERLAP_F_B");
  EXPECT_EQ(mistakes(""), "s.csv:1:1: error: no action in this file");
  EXPECT_EQ(mistakes(",,\n\n"), "s.csv:1:1: error: no action in this file");
  EXPECT_EQ(mistakes("0F0\xff"), "s.csv:1:4: error: byte 0xff is not UTF-8 text");
}

TEST(ScheduleCsv, EveryFlawOfTheScheduleHasItsLine) {
  EXPECT_EQ(mistakes("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"),
            "s.csv:2:1: error: stage 1 has no B, nor I and W, of micro-batch 1");
  EXPECT_EQ(mistakes("0F0,0F1,0B0,,0B1,0F0\n1B0,1F0,1F1,1B1\n"),
            "s.csv:1:18: error: 0F0 for the second time\n"
            "s.csv:2:1: error: 1B0 before 1F0");
  EXPECT_EQ(mistakes("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
            "s.csv:1:5: error: deadlock: rank 0 at 0B0 waits for 1B0, rank 1 at 1F1 waits for 0F1");
  EXPECT_EQ(mistakes("0F0,0B0\n\n2F0,2B0\n"),
            "s.csv:2:1: error: rank 1 has nothing to do\n"
            "s.csv:1:1: error: no rank has stage 1 of 3");
  EXPECT_EQ(mistakes("0F0,0B0,0F100,0B1\n1F0,1B0,1F1,1B1\n"),
            "s.csv:1:9: error: 2 stages × 101 micro-batches, by the largest numbers here, are 202 "
            "forwards, but the file has 8 actions in all");
}

// What PyTorch 2.15 writes for its own 1F1B: the last rank counts from 1.
TEST(ScheduleCsv, RefusesWhatCannotRunInPyTorchEither) {
  EXPECT_EQ(mistakes("0F0,0F1,0B0,0B1,0REDUCE_GRAD\n1F1,1B0,1F2,1B1,1REDUCE_GRAD\n"),
            "s.csv:1:1: error: stage 0 has no F of micro-batch 2\n"
            "s.csv:1:1: error: stage 0 has no B, nor I and W, of micro-batch 2\n"
            "s.csv:2:1: error: stage 1 has no F of micro-batch 0\n"
            "s.csv:2:1: error: stage 1 has no B, nor I and W, of micro-batch 2");
}

TEST(ScheduleCsv, TransfersHaveTwoEndsInOrder) {
  const std::string_view first = "0F0,0SEND_F0,0RECV_B0,0B0\n";
  EXPECT_EQ(mistakes(std::string(first) + "1RECV_F0,1F0,1B0,1SEND_B0\n"), "nothing");
  EXPECT_EQ(mistakes(std::string(first) + "1F0,1B0,1SEND_B0\n"),
            "s.csv:2:1: error: 1F0 without 1RECV_F0 before it");
  EXPECT_EQ(mistakes("0F0,0B0,0RECV_B0\n1F0,1RECV_F0,1SEND_B0,1B0,1SEND_B0\n"),
            "s.csv:2:27: error: 1SEND_B0 for the second time");
  EXPECT_EQ(mistakes("0F0,0B0,0RECV_B0\n1F0,1RECV_F0,1SEND_B0,1B0\n"),
            "s.csv:1:1: error: 0F0 without 0SEND_F0 after it\n"
            "s.csv:1:9: error: 0RECV_B0 after 0B0\n"
            "s.csv:2:5: error: 1RECV_F0 after 1F0\n"
            "s.csv:2:14: error: 1SEND_B0 before 1B0");
  EXPECT_EQ(mistakes("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0,2SEND_F0\n"),
            "s.csv:2:36: error: 2SEND_F0: nothing is computed there");
  EXPECT_EQ(mistakes("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0\n"),
            "s.csv:2:14: error: 1SEND_F0 to nobody: no other rank needs it");
  EXPECT_EQ(mistakes("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "s.csv:2:18: error: 1SEND_B0 without 1WAIT_SEND_B0");
  EXPECT_EQ(mistakes("1SEND_F0,0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "s.csv:1:1: error: 1SEND_F0 is on rank 0, but stage 1 is on rank 1");
}

TEST(ScheduleCsv, ParametersAndGradientsAreThereInTime) {
  EXPECT_EQ(mistakes("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD\n"), "nothing");
  EXPECT_EQ(mistakes("0F0,0UNSHARD,0UNSHARD,0RESHARD,0B0,0RESHARD\n"),
            "s.csv:1:1: error: 0F0 while stage 0 is not unsharded\n"
            "s.csv:1:14: error: 0UNSHARD, but it is unsharded already\n"
            "s.csv:1:32: error: 0B0 while stage 0 is not unsharded\n"
            "s.csv:1:36: error: 0RESHARD, but it is not unsharded");
  EXPECT_EQ(mistakes("0F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0B0\n"),
            "s.csv:1:5: error: 0REDUCE_GRAD before 0B0");
  EXPECT_EQ(mistakes("0F0,0B0,0WAIT_REDUCE_GRAD\n"),
            "s.csv:1:9: error: 0WAIT_REDUCE_GRAD without 0REDUCE_GRAD before it");
}

TEST(ScheduleCsv, ASeaOfMistakesEnds) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "?,";
  try {
    parse_schedule_csv(text, "s.csv");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 100u);
  }
}

}  // namespace
}  // namespace rehearse::schedule_csv_test
