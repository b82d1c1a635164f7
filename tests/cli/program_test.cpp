// `rehearse program` and `rehearse validate`, from files to exit codes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/program/program_text.hpp"
#include "tests/support/scenario_file.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::program_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* relay = R"(rehearse program 1
connection there: 0 -> 1
connection on: 1 -> 2
op send: rank 0 comm 0 transfer there 0[0,+1000000] -> 0[0,+1000000] "hop" 0
op forward: rank 1 comm 0 transfer on 0[0,+1000000] -> 0[0,+1000000] after send "hop" 1
op use: rank 2 compute compute fixed 3us reads 0[0,+1000000] after forward "gemm"
)";

// What every pass of a lowering leaves is a program that reads back.
TEST(ProgramOfAScenario, IsShownAfterEachPass) {
  const TemporaryFile scenario(small_scenario);
  const auto ops = [&](const std::string& pass) {
    const Outcome outcome = shell("$R program show " + scenario.path() + " --after " + pass +
                                  " --set nodes=1 --set global_batch_size=4");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    const Program program = parse_program(outcome.text, pass);
    std::array<std::size_t, 4> count{};
    for (const Program::Op& op : program.ops()) ++count[static_cast<std::size_t>(op.kind)];
    return count;
  };
  constexpr auto transfers = static_cast<std::size_t>(WorkKind::transfer);
  constexpr auto collectives = static_cast<std::size_t>(WorkKind::collective);
  const auto lowered = ops("lower"), flows = ops("flows"), expanded = ops("expand");
  EXPECT_GT(lowered[collectives], 0u);
  EXPECT_EQ(ops("perturb"), lowered);
  EXPECT_EQ(flows[collectives], 0u);
  EXPECT_EQ(flows[transfers], lowered[transfers] + lowered[collectives]);
  EXPECT_EQ(expanded[collectives], 0u);
  EXPECT_GT(expanded[transfers], flows[transfers]);
}

TEST(ProgramOfAScenario, NamesThePasses) {
  expect_outcome("$R program show x.toml --after flow", 2,
                 "error: unknown pass 'flow'; did you mean 'flows'?; the passes are lower, "
                 "perturb, flows, expand\n");
  expect_outcome("$R program show x.txt --set tp=2", 2,
                 "error: --set changes a scenario: it requires --after\n");
}

class ProgramCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rehearse-program-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("relay", relay);
    write("race", relay);
    replace("race", " after forward", "");
    write("circle", relay);
    replace("circle", "\"hop\" 0", "after use \"hop\" 0");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string read(const std::string& name) const {
    std::ifstream stream{folder_ / name};
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream{folder_ / name} << text;
  }
  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = read(name);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    write(name, text.replace(at, from.size(), to));
  }
  void expect(const std::string& line, int exit_code, const std::string& text) const {
    expect_outcome("cd " + folder_.string() + " && $R " + line, exit_code, text);
  }
  Outcome run(const std::string& line) const {
    return shell("cd " + folder_.string() + " && $R " + line);
  }

  fs::path folder_;
};

TEST_F(ProgramCommand, VerifyProvesOrNames) {
  expect("program verify relay", 0, "no race in 3 ops\n");
  expect(
      "program verify race", 1,
      "error: race: op 1 'hop 1' (rank 1, comm 0) writes and op 2 'gemm' (rank 2, compute) reads "
      "rank 2 buffer 0 [0, 1000000), in no certain order\n");
}

TEST_F(ProgramCommand, ACircleIsNamedByEveryEngineAndNeverTimed) {
  const std::string circle =
      "error: cannot finish: op 0 'hop 0' (rank 0, comm 0) waits for op 2 'gemm' (rank 2, compute) "
      "(edge) waits for op 1 'hop 1' (rank 1, comm 0) (edge) waits for op 0 (edge)\n";
  expect("program verify circle", 1, circle);
  expect("program run circle --cluster dgx-h100", 1, circle);
  const Outcome simgrid = run("program run circle --cluster dgx-h100 --engine simgrid");
  if (simgrid.exit_code == 77) GTEST_SKIP() << "this build has no SimGrid";
  EXPECT_EQ(simgrid.text, circle);
}

TEST_F(ProgramCommand, RunWritesWhatItFound) {
  const Outcome outcome =
      run("program run relay --cluster dgx-h100 --explain --json out.json --trace trace.json.gz");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* const words :
       {"makespan ", "critical path: ", "2 × hop on ranks 0 to 1", "1 × gemm on rank 2: 3 us",
        "busiest links, of ", "waited for nothing", "for its input: op 1 'hop 1'"})
    EXPECT_NE(outcome.text.find(words), std::string::npos) << words << "\n" << outcome.text;
  const nlohmann::json result = nlohmann::json::parse(read("out.json"));
  EXPECT_EQ(result["ops"], 3);
  EXPECT_EQ(result["engine"], "fast");
  EXPECT_EQ(result["critical_path"], (std::vector<int>{0, 1, 2}));
  EXPECT_GT(result["makespan_ps"], 3'000'000);
  for (const nlohmann::json& link : result["links"]) EXPECT_LE(link["load"], 1.0);
  const Outcome trace = shell("gzip -dc " + (folder_ / "trace.json.gz").string());
  EXPECT_TRUE(nlohmann::json::accept(trace.text));
}

TEST_F(ProgramCommand, StandardOutputIsForOneResult) {
  const Outcome outcome = run("program run relay --cluster dgx-h100 --json - 2>/dev/null");
  EXPECT_TRUE(nlohmann::json::accept(outcome.text)) << outcome.text;
  expect("program run relay --cluster dgx-h100 --json - --trace -", 2,
         "error: --json and --trace cannot both go to standard output\n");
}

TEST_F(ProgramCommand, MistakesAreTheUsers) {
  expect("program run relay --cluster dgx-h100 --engine fats", 2,
         "error: unknown engine 'fats'; did you mean 'fast'?\n");
  expect("program run relay --cluster dgx-h100 --op 3", 2,
         "error: --op 3: the program has 3 ops\n");
  expect("program run relay --cluster dgx-h100 --trace-ranks 0-8", 2,
         "error: --trace-ranks '0-8': there are 8 ranks\n");
  replace("relay", "on: 1 -> 2", "on: 1 -> 99");
  expect("program run relay --cluster dgx-h100", 2,
         "relay: error: connection c1 names rank 99, but there are 8 ranks\n");
}

TEST_F(ProgramCommand, CollectivesAreExpanded) {
  write("whole",
        "rehearse program 1\nop 0: rank 0 comm 0 collective reduce group 0,1 data 0[0,+4]\n");
  const Outcome expanded = run("program expand whole --cluster dgx-h100 --algorithm ring");
  EXPECT_EQ(expanded.exit_code, 0);
  // After a launch on either rank, which is a connection of its own.
  EXPECT_NE(expanded.text.find("connection c1: 1 -> 1 latency "), std::string::npos);
  EXPECT_NE(expanded.text.find("transfer c2 sum 0[0,+4] -> 0[0,+4]"), std::string::npos)
      << expanded.text;
  EXPECT_EQ(run("program run whole --cluster dgx-h100").exit_code, 0);
  expect("program run whole --cluster dgx-h100 --algorithm rings", 2,
         "error: unknown algorithm 'rings'; did you mean 'ring'?\n");
}

TEST_F(ProgramCommand, WhatCannotBeWrittenIsDeviceTrouble) {
  const Outcome outcome = run("program run relay --cluster dgx-h100 --json no/such/folder");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.text.find("error: cannot write 'no/such/folder': No such file or directory\n"),
            std::string::npos);
}

TEST_F(ProgramCommand, ValidateTellsTheMistakesOfAllFiles) {
  expect("validate relay circle", 0, "relay: ok, program of 3 ops\ncircle: ok, program of 3 ops\n");
  replace("race", "rank 1", "rank one");
  replace("circle", "after use", "after nothing");
  expect("validate race relay circle 2>/dev/null", 2, "relay: ok, program of 3 ops\n");
  expect("validate race relay circle >/dev/null", 2,
         "race:5:18: error: expected a rank, not 'one'\n"
         "circle:4:76: error: there is no op 'nothing'\n");
}

}  // namespace
}  // namespace rehearse::program_test
