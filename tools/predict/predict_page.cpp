// The summary's figures as cards, its words as they are, and the drawings of tools/report.
#include "tools/predict/predict_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/explain.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/output/chart.hpp"
#include "tools/report/breakdown_figure.hpp"
#include "tools/report/html_page.hpp"
#include "tools/report/memory_figure.hpp"
#include "tools/report/pipeline_figure.hpp"
#include "tools/report/roofline_figure.hpp"
#include "tools/report/timeline_figure.hpp"
#include "tools/report/topology_figure.hpp"

namespace rehearse {

namespace {

// How long the simulation took is no part of its result: equal runs give equal pages.
std::string without_wall_time(std::string text) {
  const std::string_view before = " simulated in ";
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return text;
  const std::size_t end = text.find(" s", at + before.size());
  if (end == std::string::npos) return text;
  return text.erase(at + before.size() - 4, end + 2 - (at + before.size() - 4));
}

std::string title_of(const LoadedScenario& loaded) {
  if (!loaded.scenario.title.empty()) return loaded.scenario.title;
  return fmt::format("{} on {}", loaded.workload.name, loaded.topology.name);
}

const Accelerator* device_of(const Topology& topology) {
  const std::size_t which = topology[topology.device_of(Rank{0})].accelerator;
  return which < topology.accelerators.size() ? &topology.accelerators[which] : nullptr;
}

std::vector<PageCard> cards_of(const Prediction& told) {
  const auto fullest = std::max_element(
      told.roles.begin(), told.roles.end(),
      [](const RoleReport& a, const RoleReport& b) { return a.peak_bytes < b.peak_bytes; });
  Time exposed;
  for (const Time time : told.mean.exposed) exposed += time;
  const double step = told.step.seconds().count();
  const auto percent = [&](Time part) {
    return fmt::format("{:.1f} %", 100 * part.seconds().count() / step);
  };
  std::vector<PageCard> cards{
      {"step time", readable(told.step), fmt::format("{} samples", grouped(told.samples, 0))},
      {"MFU", fmt::format("{:.1f} %", 100 * told.mfu()),
       fmt::format("{:.1f} TFLOP/s a GPU", told.model_flops_per_gpu().count() * 1e-12)}};
  if (told.tokens > 0)
    cards.push_back(
        {"tokens/s", grouped(told.tokens_per_second(), 0),
         fmt::format("{} a GPU",
                     grouped(told.tokens_per_second() / static_cast<double>(told.world), 0))});
  else
    cards.push_back({"samples/s", grouped(told.samples_per_second(), 1), ""});
  cards.push_back({"bubble", percent(told.mean.bubble), "of the step, mean over ranks"});
  cards.push_back({"exposed communication", percent(exposed), "of the step, mean over ranks"});
  if (fullest != told.roles.end())
    cards.push_back({"memory", fmt::format("{:.1f} GiB", gibibytes(fullest->peak_bytes)),
                     fullest->capacity == Bytes{0}
                         ? "of the fullest device"
                         : fmt::format("of {:.1f} GiB: {}", gibibytes(fullest->capacity),
                                       told.fits ? "fits" : "does not fit")});
  return cards;
}

std::vector<std::string> verdict_of(const PredictReport& report) {
  std::vector<std::string> verdict = report.verdict.sentences;
  if (!report.verdict.better.empty())
    verdict.push_back(fmt::format(
        "Tried {}; {}:", counted_noun(report.verdict.tried, "change"),
        report.verdict.makes_it_fit ? "these fit, the fastest first" : "try, the best first"));
  for (const Neighbour& neighbour : report.verdict.better)
    verdict.push_back("  " + describe(neighbour, report.answer.prediction));
  return verdict;
}

Page page_of(const LoadedScenario& loaded, const Prediction& told, std::string_view command,
             std::string_view engine, std::string transcript) {
  Page page;
  page.title = title_of(loaded);
  page.kicker = fmt::format("rehearse {}: one training step, simulated", command);
  const Topology& topology = loaded.topology;
  if (!loaded.scenario.question.empty())
    page.facts.emplace_back("question", loaded.scenario.question);
  page.facts.emplace_back("model", describe(loaded.workload));
  page.facts.emplace_back(
      "cluster", fmt::format("{}: {}, {}", topology.name,
                             counted_noun(std::max<std::size_t>(topology.node_count(), 1), "node"),
                             counted_noun(topology.rank_count(), "rank")));
  page.facts.emplace_back(
      "layout", fmt::format("world {} = tp {} × pp {} × cp {} × dp {}", told.world, told.tensor,
                            told.pipeline, told.context, told.data));
  page.cards = cards_of(told);
  page.transcript = without_wall_time(std::move(transcript));
  page.notes.push_back(fmt::format("scenario {}, rehearse {}, engine {}",
                                   fingerprint(loaded.scenario), version(), engine));
  page.notes.push_back("Simulated; calibration: " + calibration_words(loaded.scenario));
  return page;
}

}  // namespace

std::string predict_page(const PredictReport& report) {
  const StepPredictor::Answer& answer = report.answer;
  Page page = page_of(report.loaded, answer.prediction, "predict", report.engine, summary(report));
  page.verdict = verdict_of(report);
  page.figures.push_back(breakdown_figure(answer.prediction, answer.step, answer.timeline));
  page.figures.push_back(pipeline_figure(answer.step, answer.timeline));
  page.figures.push_back(timeline_figure(answer.step, answer.timeline));
  page.figures.push_back(memory_figure(answer.prediction, answer.step, answer.timeline));
  if (const Accelerator* const device = device_of(report.loaded.topology))
    page.figures.push_back(
        roofline_figure(answer.step, answer.timeline, *device, answer.prediction.peak));
  page.figures.push_back(
      topology_figure(report.loaded.topology, answer.step.link_bytes, answer.timeline.makespan));
  return html_page(page);
}

std::string server_page(const ServerTold& told) {
  Page page =
      page_of(told.loaded, told.answer.prediction, "predict", told.engine, server_summary(told));
  page.figures.push_back(timeline_figure(told.answer.lowered.program, told.answer.timeline));
  return html_page(page);
}

}  // namespace rehearse
