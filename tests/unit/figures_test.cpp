// What figures show adds up: bars to the step, memory to its peak, cables to the machine's links.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "strategies/predict/account.hpp"
#include "tests/support/training.hpp"
#include "tools/report/axes.hpp"
#include "tools/report/breakdown_figure.hpp"
#include "tools/report/curves_figure.hpp"
#include "tools/report/html_page.hpp"
#include "tools/report/memory_figure.hpp"
#include "tools/report/pipeline_figure.hpp"
#include "tools/report/scatter_figure.hpp"
#include "tools/report/topology_figure.hpp"
#include "tools/report/topology_plan.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::figures_test {
namespace {

StepPredictor::Answer step_of(std::size_t stages, std::size_t microbatches) {
  const EqualLayers model{.count = stages};
  Scenario scenario = model.scenario(microbatches);
  scenario.parallelism.pipeline = stages;
  scenario.parallelism.layers_per_stage = model.per_stage(stages);
  const Topology machine = calm_star(stages, {1.0_GBps, 5_us});
  const ProductCost cost(100_us, 100_us, model.samples);
  return StepPredictor(machine, cost).predict(scenario, model.workload(), {});
}

struct Box {
  double x = 0, y = 0, width = 0;
};
std::vector<Box> boxes_of(const std::string& svg, const std::string& what) {
  const std::regex pattern(
      "<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" "
      "height=\"" +
      what);
  std::vector<Box> boxes;
  for (std::sregex_iterator at(svg.begin(), svg.end(), pattern), end; at != end; ++at)
    boxes.push_back({std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3])});
  return boxes;
}

TEST(Figures, BarsOfTheBreakdownAreAsLongAsTheStep) {
  const StepPredictor::Answer answer = step_of(4, 8);
  const Figure figure = breakdown_figure(answer.prediction, answer.step, answer.timeline);
  std::map<double, double> end;  // by bar: where its last part ends
  for (const Box& box : boxes_of(figure.svg, "24\""))
    end[box.y] = std::max(end[box.y], box.x + box.width);
  EXPECT_EQ(end.size(), 5u);  // the mean and four stages
  for (const auto& [y, x] : end) EXPECT_NEAR(x, 1108, 0.7);
}

TEST(Figures, BoxesOfThePipelineAreAsWideAsTheirTime) {
  const StepPredictor::Answer answer = step_of(2, 4);
  const Figure figure = pipeline_figure(answer.step, answer.timeline);
  const std::vector<Box> boxes = boxes_of(figure.svg, "22\"");
  ASSERT_EQ(boxes.size(), 2u * 4 * 2);
  // A layer takes 100 us forward and twice that back; 940 pixels are the step.
  const double pixel = answer.timeline.makespan.seconds().count() / 940;
  EXPECT_NEAR(boxes.front().width, 100e-6 / pixel, 0.7);
  double sum = 0;
  for (const Box& box : boxes) sum += box.width + 0.6;
  EXPECT_NEAR(sum, 2 * 4 * 300e-6 / pixel, 1);
}

TEST(Figures, MemoryOverTimeHasThePeakOfTheAccount) {
  const StepPredictor::Answer answer = step_of(3, 6);
  for (const Role& role : answer.step.roles) {
    Bytes most;
    for (const MemoryMoment& moment : memory_over_time(answer.timeline, role)) {
      Bytes sum;
      for (const Bytes bytes : moment.use) sum += bytes;
      most = std::max(most, sum);
    }
    EXPECT_EQ(most, memory_peak(answer.timeline, role).total);
  }
}

TEST(Figures, CablesOfASmallMachineAreAllThere) {
  const Topology machine = load_cluster("dgx-h100", {.nodes = 2});
  const std::vector<Bytes> bytes(machine.links().size(), Bytes{1000});
  const std::vector<double> shares = busy_shares(machine, bytes, 1_us);
  const TopologyPlan plan = plan_topology(machine, bytes, shares);
  std::size_t links = 0, shown = 0;
  for (const Link& link : machine.links())
    links += machine[link.source].kind != DeviceKind::memory &&
             machine[link.target].kind != DeviceKind::memory;
  for (const ShownCable& cable : plan.cables) shown += 2 * cable.cables;
  EXPECT_EQ(shown, links);
}

TEST(Figures, ManyNodesAreOneBoxAndNoneIsLost) {
  const Topology machine = load_cluster("dgx-h100", {.nodes = 128});
  const TopologyPlan plan = plan_topology(machine, {}, {});
  std::size_t nodes = 0;
  for (const ShownDevice& device : plan.devices)
    if (device.is_nodes) nodes += device.count;
  EXPECT_EQ(nodes, 127u);
  EXPECT_LT(plan.devices.size(), 64u);
  EXPECT_LT(topology_figure(machine, {}, 1_us).svg.size(), 100'000u);
}

TEST(Figures, SharesAreBytesOverWhatALinkCouldCarry) {
  const Topology machine = star(2, {1.0_GBps, Time{}});
  const std::vector<Bytes> bytes(machine.links().size(), Bytes{250});
  for (const double share : busy_shares(machine, bytes, 1_us)) EXPECT_DOUBLE_EQ(share, 0.25);
}

TEST(Axes, TicksAreRound) {
  EXPECT_EQ(round_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.2 * 3, 0.8, 1}));
  EXPECT_EQ(round_ticks(0, 964, 9).back(), 800);
  EXPECT_EQ(log_ticks(1, 1e6).size(), 7u);
  EXPECT_EQ(binary_ticks(8, 64, 8), (std::vector<double>{8, 16, 32, 64}));
  EXPECT_EQ(binary_ticks(7, 0x1p33, 8),
            (std::vector<double>{32, 1024, 32768, 0x1p20, 0x1p25, 0x1p30}));
  EXPECT_EQ(short_number(1.5e9), "1.5G");
  EXPECT_EQ(short_number(0), "0");
  const Scale scale = log_scale(1, 100, 0, 100);
  EXPECT_DOUBLE_EQ(scale(10), 50);
}

TEST(Figures, WithoutAnythingToShowThereIsNoPicture) {
  EXPECT_EQ(curves_figure({.name = "empty"}).svg, "");
  EXPECT_EQ(scatter_figure({.name = "empty"}).svg, "");
  CurvesPlot plot{.name = "one", .x_log = true};
  plot.curves = {{"a", {{-1, 1, ""}, {0, 2, ""}}}};
  EXPECT_EQ(curves_figure(plot).svg, "");
}

TEST(HtmlPage, EverythingIsEscaped) {
  const std::string evil = "<img src=x onerror=alert(1)>\"'&";
  Page page;
  page.title = page.kicker = page.transcript = evil;
  page.facts = {{evil, evil}};
  page.cards = {{evil, evil, evil}};
  page.verdict = page.notes = {evil};
  page.tables = {{evil, {{evil}, {{evil}}}}};
  page.figures = {{"name", evil, evil, "<svg></svg>", {{evil}, {{evil}}}, ""}};
  const std::string html = html_page(page);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find(evil), std::string::npos);
}

}  // namespace
}  // namespace rehearse::figures_test
