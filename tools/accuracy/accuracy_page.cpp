// A scatter for each file, its sweeps in different colours, and the table of errors.
#include "tools/accuracy/accuracy_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tools/accuracy/accuracy_summary.hpp"
#include "tools/cli/version.hpp"
#include "tools/report/html_page.hpp"
#include "tools/report/scatter_figure.hpp"

namespace rehearse {

namespace {

constexpr std::size_t most_groups = 8;  // colours; what comes after them shares the last

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string stem_of(const MeasuredFile& file) {
  return file.name == "-" ? "standard input" : std::filesystem::path(file.name).filename().string();
}

bool is_in_seconds(const MeasuredRow& row) {
  return std::holds_alternative<TrainingMeasured>(row.what) ||
         std::holds_alternative<DataParallelMeasured>(row.what);
}

Figure scatter_of(const AccuracyReport& report, std::size_t f) {
  const MeasuredFile& file = report.files[f];
  ScatterPlot plot;
  plot.name = fmt::format("scatter-{}", f);
  plot.title = fmt::format("Predicted against measured: {}", stem_of(file));
  plot.unit = !file.rows.empty() && is_in_seconds(file.rows.front()) ? "s" : "us";
  for (const AccuracyRow& row : report.rows) {
    if (row.file != f || !row.is_scored()) continue;
    const MeasuredRow& measured = file.rows[row.row];
    const std::string sweep = measured.sweep.empty() ? "all rows" : measured.sweep;
    auto group = std::find(plot.groups.begin(), plot.groups.end(), sweep);
    if (group == plot.groups.end() && plot.groups.size() < most_groups)
      group = plot.groups.insert(group, sweep);
    if (group == plot.groups.end()) {
      plot.groups.back() = "others";
      --group;
    }
    std::string name = measured.case_id;
    if (const auto* c = std::get_if<CollectiveMeasured>(&measured.what))
      name += fmt::format(" at {} B", c->size_bytes);
    plot.points.push_back({*row.measured, row.predicted, std::move(name),
                           static_cast<std::size_t>(group - plot.groups.begin())});
  }
  return scatter_figure(plot);
}

PageTable errors_of(const AccuracyReport& report) {
  PageTable table{"Errors", {}};
  table.table.head = {"file", "sweep", "rows", "mean", "median", "90th", "rank correlation"};
  for (const AccuracySummary& sum : summaries(report.rows, report.files)) {
    if (sum.rows == 0) continue;
    table.table.rows.push_back({std::filesystem::path(sum.file).filename().string(),
                                sum.sweep.empty() ? "all" : sum.sweep, std::to_string(sum.rows),
                                percent(sum.mape), percent(sum.median_ape), percent(sum.p90_ape),
                                sum.spearman ? fmt::format("{:.2f}", *sum.spearman) : "-"});
  }
  return table;
}

}  // namespace

std::string accuracy_page(const AccuracyReport& report) {
  Page page;
  page.title = "How far off are the predictions?";
  page.kicker = "rehearse accuracy: published measurements, predicted row by row";
  std::size_t scored = 0, unbuilt = 0;
  for (const AccuracyRow& row : report.rows) {
    scored += row.is_scored();
    unbuilt += !row.is_predicted();
  }
  page.cards.push_back({"rows", std::to_string(report.rows.size()),
                        fmt::format("{} scored, {} not predicted", scored, unbuilt)});
  for (std::size_t f = 0; f < report.files.size(); ++f) {
    AccuracyRows rows;
    for (const AccuracyRow& row : report.rows)
      if (row.file == f) rows.push_back(&row);
    const AccuracySummary sum = summed_up(rows, report.files);
    if (sum.rows > 0)
      page.cards.push_back(
          {stem_of(report.files[f]), percent(sum.median_ape),
           fmt::format("median error of {} rows; mean {}", sum.rows, percent(sum.mape))});
    page.figures.push_back(scatter_of(report, f));
  }
  page.tables.push_back(errors_of(report));
  page.transcript = accuracy_text(report);
  page.notes.push_back(
      fmt::format("rehearse {}; predicted values are simulated, measured ones are "
                  "as their sources say.",
                  version()));
  return html_page(page);
}

}  // namespace rehearse
