// `bench --backend host`, `run`, `compare` and `calibrate` as scripts see them.
#include <algorithm>

#include "tests/support/host_machine.hpp"
#include "tests/support/own_folder.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::commands_test {
namespace {

constexpr const char* scenario = R"(schema = 1
title = "Two ranks"
[model]
model_type = "mlp"
layer_sizes = [64, 64, 10]
[cluster]
name = "machine.toml"
[training]
micro_batch_size = 16
dtype = "fp32"
optimizer = "sgd"
)";

Outcome run_it(const std::string& words) { return shell("$R " + words); }

class HostCommands : public OwnFolder {
 protected:
  HostCommands() {
    write("scenario.toml", scenario);
    write("machine.toml", host_machine(2));
  }
};

TEST_F(HostCommands, BenchMeasuresAndFindsNothingWrong) {
  const Outcome done = run_it(
      "bench all_reduce --backend host -g 3 -b 4 -e 64K -f 128 -n 3 --json " + path("bench.json"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  EXPECT_NE(done.text.find("3 threads, measured"), std::string::npos) << done.text;
  EXPECT_NE(done.text.find("# Out of bounds values : 0 OK"), std::string::npos);
  const nlohmann::json told = read_json("bench.json");
  EXPECT_GE(told["rows"].size(), 6u);
  for (const auto& row : told["rows"]) {
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_GT(row["time_us"], 0);
  }
}

TEST_F(HostCommands, RunPacedSaysSoAndTakesAtLeastItsComputes) {
  const Outcome done =
      run_it("run " + path("scenario.toml") + " --backend host --compute paced --steps 3 --json " +
             path("run.json") + " --trace " + path("run.trace.json"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  EXPECT_NE(done.text.find("PACED"), std::string::npos) << done.text;
  const nlohmann::json told = read_json("run.json");
  EXPECT_EQ(told["compute"], "paced");
  EXPECT_EQ(told["steps"].size(), 3u);
  EXPECT_GT(told["mean_over_ranks"]["compute_ms"], 0);
  EXPECT_GE(told["step_ms"], told["mean_over_ranks"]["compute_ms"]);
  // A trace of a run and one of a prediction have the same kernels.
  ASSERT_EQ(run_it("predict " + path("scenario.toml") + " --no-fold --no-advice --trace " +
                   path("predicted.json"))
                .exit_code,
            0);
  const Outcome compared = run_it("compare " + path("predicted.json") + " " +
                                  path("run.trace.json") + " --json " + path("compared.json"));
  ASSERT_EQ(compared.exit_code, 0) << compared.text;
  const nlohmann::json both = read_json("compared.json");
  for (const auto& row : both["phases"]) {
    EXPECT_GT(row["predicted_ms"], 0) << row;
    EXPECT_GT(row["measured_ms"], 0) << row;
  }
  ASSERT_EQ(both["collectives"].size(), 1u) << both;
  EXPECT_GT(both["collectives"][0]["predicted_ms"], 0);
  EXPECT_GT(both["collectives"][0]["measured_ms"], 0);
}

// The scenario itself in the place of its trace: every rank has its own ops there, nothing is
// folded.
TEST_F(HostCommands, CompareTakesAScenarioAndATrace) {
  ASSERT_EQ(run_it("run " + path("scenario.toml") + " --backend host --steps 2 --trace " +
                   path("run.trace.json"))
                .exit_code,
            0);
  const Outcome done = run_it("compare " + path("scenario.toml") + " " + path("run.trace.json") +
                              " --json " + path("compared.json"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  const nlohmann::json told = read_json("compared.json");
  const nlohmann::json largest = told["largest_errors"];
  ASSERT_GT(largest.size(), 1u) << told;
  for (const auto& row : largest) {
    EXPECT_GT(row["predicted_ms"], 0) << row;
    EXPECT_GT(row["measured_ms"], 0) << row;
  }
}

TEST_F(HostCommands, RunTrains) {
  const Outcome done = run_it("run " + path("scenario.toml") + " --backend host --steps 5 --json " +
                              path("run.json"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  const nlohmann::json steps = read_json("run.json")["steps"];
  ASSERT_EQ(steps.size(), 5u);
  for (const auto& step : steps) {  // ten classes: about ln 10 at the beginning
    EXPECT_GT(step["loss"], 0.5) << step;
    EXPECT_LT(step["loss"], 5.0) << step;
  }
}

TEST_F(HostCommands, CompareRunsAScenario) {
  const Outcome done =
      run_it("compare " + path("scenario.toml") + " --backend host --steps 2 --json " +
             path("compared.json") + " --trace " + path("both.json"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  EXPECT_NE(done.text.find("the largest errors"), std::string::npos) << done.text;
  const nlohmann::json told = read_json("compared.json");
  EXPECT_GT(told["step"]["measured_ms"], 0);
  EXPECT_LE(told["largest_errors"].size(), 10u);
  EXPECT_GT(read_json("both.json")["traceEvents"].size(), 20u);
}

TEST_F(HostCommands, CalibrateWritesAProfileThatPredictTakes) {
  const Outcome done = run_it("calibrate --backend host --cluster " + path("machine.toml") +
                              " --largest 256KiB --scenario " + path("scenario.toml") + " -o " +
                              path("profile.toml"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  const Outcome predicted =
      run_it("predict " + path("scenario.toml") + " --calibration " + path("profile.toml"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.text;
  EXPECT_NE(predicted.text.find("2 threads"), std::string::npos) << predicted.text;
  // What people ask: links alone and shared, collectives, and what slows what.
  for (const char* words :
       {"alpha", "beta", "a message in a row", "outliers", "Residuals: mean error",
        "# message 65536 B", "# two messages at once 65536 B", "# ring all_reduce 65536 B",
        "communication costs products", "messages beside products lose"})
    EXPECT_EQ(shell("grep -q '" + std::string{words} + "' " + path("profile.toml")).exit_code, 0)
        << words;
}

TEST_F(HostCommands, CalibrateTakesTheMachineOfAScenario) {
  const Outcome done = run_it("calibrate --backend host --scenario " + path("scenario.toml") +
                              " --largest 4KiB --rounds 1 -o " + path("profile.toml"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  const Outcome predicted =
      run_it("predict " + path("scenario.toml") + " --calibration " + path("profile.toml"));
  EXPECT_EQ(predicted.exit_code, 0) << predicted.text;
}

TEST_F(HostCommands, CompareCalibratesInTurnsWithTheRun) {
  for (const std::string compute : {"real", "paced"}) {
    const Outcome done =
        run_it("compare " + path("scenario.toml") + " --backend host --compute " + compute +
               " --calibrate " + path("profile.toml") +
               " --rounds 2 --steps 4 --largest 64KiB --json " + path("compared.json"));
    ASSERT_EQ(done.exit_code, 0) << done.text;
    EXPECT_NE(done.text.find("predicted with measured in turns with the run"), std::string::npos)
        << done.text;
    EXPECT_GT(read_json("compared.json")["step"]["predicted_ms"], 0);
    const Outcome predicted =
        run_it("predict " + path("scenario.toml") + " --calibration " + path("profile.toml"));
    EXPECT_EQ(predicted.exit_code, 0) << predicted.text;
    // Kernels that only wait were not measured.
    EXPECT_EQ(shell("grep -q 'accelerator.measured' " + path("profile.toml")).exit_code,
              compute == "real" ? 0 : 1);
  }
  const Outcome both = run_it("compare " + path("scenario.toml") + " --backend host --calibrate " +
                              path("other.toml") + " --calibration " + path("profile.toml"));
  EXPECT_EQ(both.exit_code, 2) << both.text;
  EXPECT_NE(both.text.find("a profile of it was named as well"), std::string::npos) << both.text;
  EXPECT_NE(shell("test -e " + path("other.toml")).exit_code, 0);
}

TEST_F(HostCommands, WithoutAGpuThereIsNothingToRunOn) {
  for (const std::string& words :
       std::vector<std::string>{"run " + path("scenario.toml") + " --backend cuda",
                                "calibrate --backend cuda -o " + path("profile.toml"),
                                "bench all_reduce --backend cuda"}) {
    const Outcome done = run_it(words);
    EXPECT_EQ(done.exit_code, 77) << words;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << done.text;
  }
  EXPECT_FALSE(std::filesystem::exists(path("profile.toml")));
}

TEST_F(HostCommands, MistakesAreOneLine) {
  const std::string file = path("scenario.toml");
  for (const std::string& words : std::vector<std::string>{
           "run " + file, "run " + file + " --backend moon",
           "run " + file + " --backend host --compute fast",
           "run " + file + " --backend host --compute paced --steps 0", "compare " + file,
           std::string("compare nothing.json nothing.json"),
           std::string("bench all_reduce --backend host -d int32"),
           std::string("bench all_reduce --backend host --algorithm nvls"),
           "calibrate --cluster " + path("machine.toml") + " -o -", "calibrate --backend host -o -",
           "compare a.json b.json --calibrate " + path("profile.toml"),
           "calibrate --backend host --nodes 2 --scenario " + path("scenario.toml") + " -o -",
           "calibrate --backend host --cluster dgx-h200x -o -"}) {
    const Outcome done = run_it(words);
    EXPECT_EQ(done.exit_code, 2) << words << "\n" << done.text;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << words << "\n"
                                                                       << done.text;
  }
}

}  // namespace
}  // namespace rehearse::commands_test
