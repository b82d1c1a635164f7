// Small figures, byte by byte as they were when somebody last looked at them in a browser.
// `golden_tests --update` rewrites them; look at the pictures before you keep them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "strategies/schedules/schedules.hpp"
#include "tests/support/training.hpp"
#include "tools/report/pipeline_figure.hpp"
#include "tools/report/timeline_figure.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

bool updates() {
  const std::vector<std::string> words = testing::internal::GetArgvs();
  return std::find(words.begin(), words.end(), "--update") != words.end();
}

void expect_golden(const std::string& name, const std::string& svg) {
  const fs::path folder = fs::path{REHEARSE_SOURCE_DIR} / "tests" / "golden" / "figures";
  const fs::path file = folder / (name + ".svg");
  if (updates()) {
    fs::create_directories(folder);
    std::ofstream(file, std::ios::binary) << svg;
    return;
  }
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  EXPECT_EQ(svg, text.str()) << "if this is meant to be so: golden_tests --update, and look at it";
}

// Four stages on GPUs whose links take a tenth of a forward pass.
StepPredictor::Answer small_step(std::string_view schedule) {
  const EqualLayers model{.count = 4};
  Scenario scenario = model.scenario(8);
  scenario.parallelism.pipeline = 4;
  scenario.parallelism.schedule = schedule;
  scenario.parallelism.layers_per_stage = model.per_stage(4);
  const Topology machine = calm_star(4, {1.0_GBps, 5_us});
  const ProductCost cost(100_us, 100_us, model.samples);
  return StepPredictor(machine, cost).predict(scenario, model.workload(), {});
}

TEST(Figures, ScheduleOneFOneB) {
  const Schedule schedule = make_schedule("1F1B", 4, 8);
  expect_golden("schedule-1f1b", schedule_figure(schedule, {}, 1_us).svg);
}

TEST(Figures, ScheduleInterleaved) {
  const Schedule schedule = make_schedule("Interleaved1F1B", 4, 8, 2);
  expect_golden("schedule-interleaved", schedule_figure(schedule, {}, 1_us, {.width = 700}).svg);
}

TEST(Figures, PipelineOfAStep) {
  const StepPredictor::Answer answer = small_step("ZBH1");
  expect_golden("pipeline-zbh1", pipeline_figure(answer.step, answer.timeline).svg);
}

TEST(Figures, TimelineOfAStep) {
  const StepPredictor::Answer answer = small_step("1F1B");
  expect_golden("timeline-1f1b", timeline_figure(answer.step, answer.timeline).svg);
}

}  // namespace
}  // namespace rehearse
