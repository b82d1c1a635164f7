// One scenario with a profile of its machine is one answer, whichever command is asked: all of them
// make a scenario ready by one function.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/scenario_file.hpp"
#include "tests/support/shell.hpp"
#include "tools/lab/answer.hpp"
#include "tools/teach/teach_runs.hpp"

namespace rehearse::same_answer_test {
namespace {

using nlohmann::json;

// Each line of it changes the step: devices, links, and the host's launches.
constexpr const char* profile = R"(schema = 1
name = "a node"
source = "a test"
error = 0.05
[[accelerator]]
name = "A100 SXM 80GB"
launch_overhead = "9us"
[accelerator.efficiency]
bf16 = 0.4
[[framework]]
name = "torchtitan"
launch_time = "70us"
[[link]]
kind = "nvlink"
bandwidth_share = 0.7
)";

std::string scenario_with(const std::string& calibration) {
  return fmt::format(R"(schema = 1
title = "calibrated"
{}
[model]
preset = "gpt2"
[cluster]
name = "dgx-a100"
gpus_per_node = 2
[training]
framework = "torchtitan"
micro_batch_size = 1
global_batch_size = 4
)",
                     calibration);
}

class SameAnswer : public testing::Test {
 protected:
  json asked(const std::string& command) {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.text;
    return json::parse(outcome.text, nullptr, false);
  }
  std::int64_t predicted(const std::string& file) {
    return asked("$R predict " + file + " --no-advice --json -")["step_time_ps"];
  }

  TemporaryFile profile_{profile};
  std::string text_ = scenario_with("calibration = \"" + profile_.path() + "\"\n");
  TemporaryFile file_{text_};
};

TEST_F(SameAnswer, TheProfileMatters) {
  const TemporaryFile without(scenario_with(""));
  EXPECT_NE(predicted(file_.path()), predicted(without.path()));
}

TEST_F(SameAnswer, OfSweep) {
  const json swept = asked("$R sweep " + file_.path() + " --axis pp=1 --json -");
  EXPECT_EQ(swept["points"][0]["step_time_ps"], predicted(file_.path())) << swept.dump();
}

TEST_F(SameAnswer, OfLessons) {
  Predictors predictors;
  const LessonRun run = run_lesson(text_, file_.path(), {}, predictors);
  EXPECT_EQ(run.told.step.ps(), predicted(file_.path()));
}

TEST_F(SameAnswer, OfTheLab) {
  const json shown = json::parse(lab_answer(json{{"ask", "run"}, {"toml", text_}}.dump()));
  EXPECT_EQ(shown["step_ps"], std::to_string(predicted(file_.path()))) << shown.dump();
}

// What a paced run executes is predicted with it; nothing here runs beside kernels, which a paced
// run would not feel.
TEST_F(SameAnswer, OfCompare) {
  const TemporaryFile trace("", ".json");
  const std::string command = "$R predict " + file_.path() + " --no-fold --no-advice --trace " +
                              trace.path() + " > /dev/null";
  ASSERT_EQ(shell(command).exit_code, 0);
  const json compared = asked("$R compare " + file_.path() + " " + trace.path() + " --json -");
  EXPECT_NEAR(compared["step"]["predicted_ms"].get<double>(),
              static_cast<double>(predicted(file_.path())) * 1e-9, 1e-9)
      << compared.dump();
}

}  // namespace
}  // namespace rehearse::same_answer_test
