// `rehearse schedule`: what is drawn, what is written, and one line for each mistake.
#include <gtest/gtest.h>

#include "strategies/schedules/schedules.hpp"
#include "tests/support/own_folder.hpp"
#include "tests/support/shell.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse::schedule_test {
namespace {

using ScheduleFiles = OwnFolder;

std::string pytorchs(const std::string& name) {
  return std::string{REHEARSE_SOURCE_DIR} + "/tests/golden/schedules/" + name;
}

TEST(ScheduleCommand, ListsEveryScheduleInALine) {
  const Outcome listed = shell("$R schedule list");
  EXPECT_EQ(listed.exit_code, 0);
  for (const ScheduleKind& kind : schedules())
    EXPECT_NE(listed.text.find("\n" + std::string{kind.name} + " "), std::string::npos)
        << kind.name;
  EXPECT_NE(listed.text.find("ZBVZeroBubble          2       two chunks a rank, laid out as a V"),
            std::string::npos)
      << listed.text;
}

TEST(ScheduleCommand, DrawsASchedule) {
  expect_outcome("$R schedule show 1F1B --pp 2 --microbatches 3", 0,
                 "rank 0 │0F0│0F1│       │0B0    │0F2│0B1    │   │0B2    │\n"
                 "rank 1     │1F0│1B0    │1F1│1B1    │1F2│1B2    │\n"
                 "12 steps, 25.0 % of them idle\n");
  expect_outcome("$R schedule show zb-h1 --pp 2 --microbatches 3 --columns 24 --idle", 0,
                 "rank 0 FF.IWFIWIW\n"
                 "rank 1 .FIFIWFIWW\n"
                 "10 steps, 10.0 % of them idle\n"
                 "\n"
                 "idle steps     before  between    after\n"
                 "rank 0              0        1        0\n"
                 "rank 1              1        0        0\n");
}

TEST(ScheduleCommand, StepsAreAsLongAsTheUserSays) {
  expect_outcome("$R schedule show GPipe --pp 2 --microbatches 1 --times 2,1,3", 0,
                 "rank 0 │0F0│           │0B0    │\n"
                 "rank 1     │1F0│1B0    │\n"
                 "12 steps, 50.0 % of them idle\n");
}

TEST(ScheduleCommand, WritesWhatPyTorchWrites) {
  expect_outcome(
      "$R schedule export Interleaved1F1B --pp 4 --microbatches 8 --vpp 3 --communication", 0,
      read_text_file(pytorchs("Interleaved1F1B_p4_m8_v3_comms.csv")));
  expect_outcome("$R schedule export ZBVZeroBubble --pp 4 --microbatches 9 --communication", 0,
                 read_text_file(pytorchs("ZBVZeroBubble_p4_m9_v2_comms.csv")));
  expect_outcome("$R schedule export 1F1B --pp 2 --microbatches 2", 0,
                 "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  expect_outcome("$R schedule export 1F1B --pp 2 --microbatches 2 --idle", 0,
                 "0F0,0F1,,,0B0,,,0B1\n,1F0,1B0,,1F1,1B1\n");
}

TEST_F(ScheduleFiles, AreReadBack) {
  const std::string file = path("order.csv");
  expect_outcome("$R schedule export DualPipeV --pp 2 --microbatches 5 --communication -o " + file,
                 0, "");
  const Outcome drawn = shell("$R schedule show DualPipeV --pp 2 --microbatches 5");
  expect_outcome("$R schedule show --file " + file, 0, drawn.text);
  expect_outcome("$R schedule show --file - <" + file, 0, drawn.text);
  const Outcome again = shell("$R schedule export --communication --file " + file);
  EXPECT_EQ(again.text, read("order.csv"));
}

TEST_F(ScheduleFiles, AFigureIsAFileOfItsOwn) {
  const std::string line = "$R schedule show 1F1B --pp 4 --microbatches 8 --figure ";
  const Outcome drawn = shell(line + path("order.svg"));
  EXPECT_EQ(drawn.exit_code, 0);
  EXPECT_NE(drawn.text.find("33 steps, 27.3 % of them idle\n"), std::string::npos) << drawn.text;
  EXPECT_TRUE(read("order.svg").starts_with("<svg "));
  expect_outcome(line + "-", 0, read("order.svg"));
  const Outcome nowhere = shell(line + path("no/such/folder.svg"));
  EXPECT_EQ(nowhere.exit_code, 3) << nowhere.text;
}

TEST_F(ScheduleFiles, AMistakeIsOneLineAndExitCode2) {
  const auto refused = [](const std::string& line, const std::string& text) {
    expect_outcome("$R schedule show " + line, 2, "error: " + text + "\n");
  };
  const std::string of8 = " --pp 4 --microbatches 8";
  refused("1F1C" + of8, "unknown schedule '1F1C'; did you mean '1F1B'?");
  refused("towers-of-hanoi" + of8,
          "unknown schedule 'towers-of-hanoi'; one of none, GPipe, 1F1B, Interleaved1F1B, "
          "LoopedBFS, ZBH1, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV");
  refused("Interleaved1F1B --pp 4 --microbatches 6",
          "schedule Interleaved1F1B: 4 ranks do not divide 6 micro-batches; it takes 4 or 8");
  refused("DualPipeV --pp 4 --microbatches 7",
          "schedule DualPipeV: 4 ranks × 2 chunks = 8 stages need as many micro-batches, not 7; it "
          "takes 8");
  refused("InterleavedZeroBubble --vpp 2 --pp 4 --microbatches 13",
          "schedule InterleavedZeroBubble: 13 micro-batches on 4 ranks are 3 rounds, which do not "
          "divide 13; it takes 12 or 15");
  refused("1F1B --vpp 2" + of8,
          "schedule 1F1B: each rank holds 1 chunk, not 2; Interleaved1F1B holds several");
  refused("1F1B", "a schedule has a size: add --pp and --microbatches");
  refused("1F1B --pp 4", "a schedule has a size: add --microbatches");
  refused("1F1B --microbatches 4", "a schedule has a size: add --pp");
  refused("1F1B --pp 0 --microbatches 4", "--pp 0 must be at least 1");
  refused("1F1B --pp 4 --microbatches -4", "--microbatches -4 must be at least 1");
  refused(
      "1F1B --pp 1000 --microbatches 100000",
      "a schedule of 100000000 forward passes: more than 5000000 are neither drawn nor written");
  refused("GPipe --pp 100000 --microbatches 20",
          "100000 ranks × 300057 steps are too many to draw; 'schedule export' writes them");
  refused("", "no schedule given: a name ('rehearse schedule list' has all) or --file");
  refused("1F1B --file x.csv",
          "--file says all: leave out the name, --pp, --microbatches and --vpp");
  for (const std::string command : {"show", "export"})
    expect_outcome("$R schedule " + command + " --file none.csv", 2,
                   "none.csv: error: cannot read: No such file or directory\n");
  write("broken.csv", "0F0,0B0,0F0\n");
  expect_outcome("cd " + path("") + " && $R schedule show --file broken.csv", 2,
                 "broken.csv:1:9: error: 0F0 for the second time\n");
}

TEST(ScheduleCommand, OptionsThatSayNothingAreMistakes) {
  const std::string show = "$R schedule show 1F1B --pp 2 --microbatches 2 ";
  const std::string write = "$R schedule export 1F1B --pp 2 --microbatches 2 ";
  const std::string times = "three whole numbers from 1 to 100, of F, I and W, e.g. 1,1,1\n";
  expect_outcome(show + "--times 1,2", 2, "error: --times 1,2: " + times);
  expect_outcome(show + "--times 1,0,1", 2, "error: --times 1,0,1: " + times);
  expect_outcome(show + "--times 1,2,x", 2, "error: --times 1,2,x: " + times);
  expect_outcome(show + "--columns 3", 2, "error: --columns 3 is not between 20 and 10000\n");
  expect_outcome(write + "--times 1,1,1", 2,
                 "error: --times says how many cells idle steps are: add --idle\n");
  expect_outcome(
      write + "--idle --communication", 2,
      "error: --idle is for compute alone: PyTorch's files with communication have none\n");
  expect_outcome("$R schedule show 1F1B --microbatch 2", 2,
                 "error: unknown option '--microbatch'; did you mean '--microbatches'?\n");
  expect_outcome("$R schedule shwo", 2, "error: unknown command 'shwo'; did you mean 'show'?\n");
}

}  // namespace
}  // namespace rehearse::schedule_test
