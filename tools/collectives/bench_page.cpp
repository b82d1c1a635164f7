// The table's rows as two curves; every algorithm and protocol has its own colour.
#include "tools/collectives/bench_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/explain.hpp"
#include "tools/cli/version.hpp"
#include "tools/output/chart.hpp"
#include "tools/report/curves_figure.hpp"
#include "tools/report/html_page.hpp"
#include "tools/report/timeline_figure.hpp"
#include "tools/report/topology_figure.hpp"

namespace rehearse {

namespace {

// 2^20 is 1M, as nccl-tests' users say.
std::string size_text(double bytes) {
  constexpr std::pair<double, const char*> units[] = {
      {1099511627776.0, "T"}, {1073741824.0, "G"}, {1048576.0, "M"}, {1024.0, "K"}};
  for (const auto& [size, letter] : units)
    if (bytes >= size) return fmt::format("{:.3g}{}", bytes / size, letter);
  return fmt::format("{:.4g}", bytes);
}

CurvePoint point_of(const BenchRow& row, double y) {
  return {static_cast<double>(row.size.count()), y,
          fmt::format("{}: {}, busbw {:.2f} GB/s, {}/{}",
                      size_text(static_cast<double>(row.size.count())), readable(row.time),
                      row.busbw, row.algorithm, row.protocol),
          false};
}

// One joined curve of all rows, and above it dots by what was chosen.
Figure curve_of(const BenchReport& report, bool shows_time) {
  CurvesPlot plot{.name = shows_time ? "time" : "bandwidth",
                  .title = shows_time ? "Time over size" : "Bus bandwidth over size"};
  plot.description = shows_time
                         ? "How long each size takes, both axes logarithmic: flat where latency "
                           "decides, rising where bytes do."
                         : "Bus bandwidth, which compares with the link's rate whatever the "
                           "number of ranks; colours are the algorithms chosen.";
  plot.x_name = "size (B)";
  plot.y_name = shows_time ? "time (us)" : "bus bandwidth (GB/s)";
  plot.x_log = plot.x_is_binary = true;
  plot.y_log = shows_time;
  plot.x_text = size_text;
  const auto value = [&](const BenchRow& row) {
    return shows_time ? row.time.seconds().count() * 1e6 : row.busbw;
  };
  Curve all{.name = "the fastest", .points = {}};
  std::vector<Curve> chosen;
  for (const BenchRow& row : report.rows) {
    all.points.push_back(point_of(row, value(row)));
    const std::string name = row.algorithm + "/" + row.protocol;
    auto curve = std::find_if(chosen.begin(), chosen.end(),
                              [&](const Curve& one) { return one.name == name; });
    if (curve == chosen.end())
      curve = chosen.insert(curve, {.name = name, .points = {}, .is_joined = false});
    curve->points.push_back(point_of(row, value(row)));
  }
  plot.curves.push_back(std::move(all));
  for (Curve& curve : chosen) plot.curves.push_back(std::move(curve));
  return curves_figure(plot);
}

}  // namespace

std::string bench_page(const BenchReport& report) {
  const Topology& topology = report.topology;
  Page page;
  page.title = fmt::format("{} on {}", report.collective, topology.name);
  page.kicker = "rehearse bench: what nccl-tests would measure, simulated";
  page.facts.emplace_back(
      "cluster", fmt::format("{}: {}, {}", topology.name,
                             counted_noun(std::max<std::size_t>(topology.node_count(), 1), "node"),
                             counted_noun(topology.rank_count(), "rank")));
  const auto best =
      std::max_element(report.rows.begin(), report.rows.end(),
                       [](const BenchRow& a, const BenchRow& b) { return a.busbw < b.busbw; });
  if (best != report.rows.end()) {
    page.cards.push_back(
        {"best bus bandwidth", fmt::format("{:.1f} GB/s", best->busbw),
         fmt::format("at {}, {}/{}", size_text(static_cast<double>(best->size.count())),
                     best->algorithm, best->protocol)});
    const BenchRow& first = report.rows.front();
    page.cards.push_back(
        {"smallest size", readable(first.time),
         fmt::format("{}, {}/{}", size_text(static_cast<double>(first.size.count())),
                     first.algorithm, first.protocol)});
  }
  page.figures.push_back(curve_of(report, false));
  page.figures.push_back(curve_of(report, true));
  if (report.last) {
    Figure timeline = timeline_figure(report.last->program, report.last->timeline);
    timeline.title = fmt::format("Timeline of the last size, {}",
                                 size_text(static_cast<double>(report.rows.back().size.count())));
    page.figures.push_back(std::move(timeline));
    page.figures.push_back(topology_figure(topology, report.last->timeline.link_bytes,
                                           report.last->timeline.makespan));
  } else {
    page.notes.emplace_back("The last size has too many transfers to be drawn.");
  }
  page.notes.push_back(
      fmt::format("rehearse {}, engine {}; simulated, no calibration", version(), report.engine));
  return html_page(page);
}

}  // namespace rehearse
