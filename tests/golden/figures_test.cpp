// Small figures, byte by byte as they were when somebody last looked at them in a browser.
// `golden_tests --update` rewrites them; look at the pictures before you keep them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "strategies/schedules/schedules.hpp"
#include "tests/support/places.hpp"
#include "tests/support/training.hpp"
#include "tools/report/breakdown_figure.hpp"
#include "tools/report/curves_figure.hpp"
#include "tools/report/memory_figure.hpp"
#include "tools/report/pipeline_figure.hpp"
#include "tools/report/roofline_figure.hpp"
#include "tools/report/scatter_figure.hpp"
#include "tools/report/timeline_figure.hpp"
#include "tools/report/topology_figure.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::figures_test {
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

// One layer a stage, on GPUs whose links take a tenth of a forward pass.
StepPredictor::Answer small_step(std::string_view schedule, std::size_t stages = 4) {
  const EqualLayers model{.count = stages};
  Scenario scenario = model.scenario(std::min<std::size_t>(2 * stages, 16));
  scenario.parallelism.pipeline = stages;
  scenario.parallelism.schedule = schedule;
  scenario.parallelism.layers_per_stage = model.per_stage(stages);
  const Topology machine = calm_star(stages, {1.0_GBps, 5_us});
  const ProductCost cost(100_us, 100_us, model.samples);
  return StepPredictor(machine, cost).predict(scenario, model.workload(), {});
}

Accelerator small_device() {
  return {.name = "a device",
          .memory = Bytes{1'000'000},
          .memory_bandwidth = 1.0_GBps,
          .peaks = {{"bf16", FlopsPerSecond{1e9}}, {"fp32", FlopsPerSecond{2.5e8}}}};
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

TEST(Figures, PipelineOfSixteenRanks) {
  const StepPredictor::Answer answer = small_step("1F1B", 16);
  expect_golden("pipeline-16-ranks", pipeline_figure(answer.step, answer.timeline).svg);
}

TEST(Figures, BreakdownMemoryAndRoofline) {
  StepPredictor::Answer answer = small_step("GPipe");
  for (RoleReport& role : answer.prediction.roles) role.capacity = Bytes{60'000};
  expect_golden("breakdown", breakdown_figure(answer.prediction, answer.step, answer.timeline).svg);
  expect_golden("memory", memory_figure(answer.prediction, answer.step, answer.timeline).svg);
  expect_golden(
      "roofline",
      roofline_figure(answer.step, answer.timeline, small_device(), FlopsPerSecond{1e9}).svg);
}

// Two servers of eight GPUs on a rail fabric; the busier a link, the higher its number.
TEST(Figures, TopologyOfSixteenRanks) {
  const Topology machine = load_cluster("dgx-h100", {.nodes = 2});
  std::vector<Bytes> bytes;
  for (std::size_t l = 0; l < machine.links().size(); ++l)
    bytes.emplace_back(static_cast<std::int64_t>(
        l % 3 == 0 ? 0
                   : machine.links()[l].bandwidth.count() * static_cast<double>(l) /
                         static_cast<double>(machine.links().size())));
  expect_golden("topology-16-ranks", topology_figure(machine, bytes, Time::round(Seconds{1})).svg);
}

TEST(Figures, CurvesAndScatter) {
  CurvesPlot plot{.name = "curves", .title = "Two curves", .description = "One falls."};
  plot.x_name = "ranks", plot.y_name = "efficiency", plot.x_log = true, plot.y_most = 1;
  plot.curves = {{"weak", {{8, 1, "8 ranks"}, {16, 0.98, "16 ranks"}, {64, 0.95, "64 ranks"}}},
                 {"strong <b>", {{8, 1, "8 & 1"}, {16, 0.9, "16"}, {64, 0.6, "64", true}}}};
  expect_golden("curves", curves_figure(plot, {.width = 700}).svg);
  ScatterPlot scatter{.name = "scatter", .title = "Scatter", .unit = "us"};
  scatter.groups = {"small", "large"};
  scatter.points = {{10, 9, "a", 0}, {20, 31, "b", 0}, {900, 1100, "c", 1}, {0, 1, "none", 1}};
  expect_golden("scatter", scatter_figure(scatter, {.width = 500}).svg);
}

}  // namespace
}  // namespace rehearse::figures_test
