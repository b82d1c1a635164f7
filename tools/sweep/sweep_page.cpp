// Points as dots: to the right what they take of memory, upwards how fast they are.
#include "tools/sweep/sweep_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/engine/explain.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/output/chart.hpp"
#include "tools/predict/predict_report.hpp"
#include "tools/report/curves_figure.hpp"
#include "tools/report/html_page.hpp"

namespace rehearse {

namespace {

std::string words_of(const std::vector<Axis>& axes, std::size_t point) {
  const std::vector<std::size_t> at = coordinates_of(axes, point);
  std::string words;
  for (std::size_t a = 0; a < axes.size(); ++a)
    words += fmt::format("{}{}={}", a == 0 ? "" : ", ", axes[a].name, axes[a].values[at[a]]);
  return words;
}

std::string tip_of(const SweepReport& report, std::size_t p) {
  const SweepPoint& point = report.points[p];
  return fmt::format("{}: {}, {} samples/s, MFU {:.1f} %, {:.1f} GiB{}", words_of(report.axes, p),
                     readable(point.step), grouped(point.samples_per_second, 2), 100 * point.mfu,
                     gibibytes(point.peak), point.fits ? "" : ", does not fit");
}

bool is_predicted(const SweepPoint& point) { return point.status == SweepPoint::Status::predicted; }

Figure trade_off(const SweepReport& report) {
  CurvesPlot plot{.name = "points", .title = "Throughput and memory of every point"};
  plot.x_name = "peak memory of the fullest device (GiB)";
  plot.y_name = "samples/s";
  plot.description =
      "Each dot is one combination of the axes: to the right what it needs of memory, upwards how "
      "fast it is. Points with a hole do not fit.";
  Curve fits{.name = "fits", .points = {}, .is_joined = false};
  Curve not_fit{.name = "does not fit", .points = {}, .is_joined = false};
  Curve best{.name = "the best that fits", .points = {}, .is_joined = false};
  const std::size_t winner = report.best();
  for (std::size_t p = 0; p < report.points.size(); ++p) {
    const SweepPoint& point = report.points[p];
    if (!is_predicted(point)) continue;
    Curve& curve = p == winner ? best : point.fits ? fits : not_fit;
    curve.points.push_back(
        {gibibytes(point.peak), point.samples_per_second, tip_of(report, p), !point.fits});
  }
  for (Curve* curve : {&fits, &not_fit, &best})
    if (!curve->points.empty()) plot.curves.push_back(std::move(*curve));
  return curves_figure(plot);
}

/// Whether its machines are powers of two, as most are.
bool doubles(const ScalingCurve& curve) {
  return std::all_of(curve.samples.begin(), curve.samples.end(), [](const auto& sample) {
    return std::has_single_bit(static_cast<std::uint64_t>(sample.ranks));
  });
}

Figure scaling(const std::vector<ScalingCurve>& curves, bool shows_efficiency) {
  CurvesPlot plot{.name = shows_efficiency ? "efficiency" : "scaling",
                  .title = shows_efficiency ? "Scaling efficiency" : "Scaling: throughput"};
  plot.x_name = "ranks";
  plot.x_log = true;
  plot.x_is_binary = std::all_of(curves.begin(), curves.end(), doubles);
  plot.x_text = [](double ranks) { return grouped(ranks, 0); };
  plot.y_log = !shows_efficiency;
  plot.y_most = shows_efficiency ? 1 : 0;
  plot.y_name = shows_efficiency ? "efficiency" : "samples/s";
  plot.description =
      shows_efficiency
          ? "Throughput of a rank against the curve's smallest machine: 1 would be perfect."
          : "Samples a second over the number of ranks, both axes logarithmic.";
  for (const ScalingCurve& curve : curves) {
    Curve& line = plot.curves.emplace_back();
    line.name =
        fmt::format("{}{}{}", curve.title, curve.title.empty() ? "" : ", ", to_string(curve.kind));
    if (curve.kind != ScalingKind::mixed)
      line.name += fmt::format(" (serial fraction {:.2g})", curve.serial_fraction);
    for (const ScalingCurve::Sample& sample : curve.samples) {
      const double rate = sample.samples / sample.step.seconds().count();
      line.points.push_back(
          {static_cast<double>(sample.ranks), shows_efficiency ? sample.efficiency : rate,
           fmt::format("{} ranks: {}, {} samples/s, speedup {:.3g}, efficiency {:.1f} %{}",
                       sample.ranks, readable(sample.step), grouped(rate, 2), sample.speedup,
                       100 * sample.efficiency, sample.fits ? "" : ", does not fit"),
           !sample.fits});
    }
  }
  return curves_figure(plot);
}

// The fastest that fit first.
PageTable best_points(const SweepReport& report) {
  constexpr std::size_t most = 50;
  PageTable table{"The best points", {}};
  for (const Axis& axis : report.axes) table.table.head.push_back(axis.name);
  for (const char* name : {"step", "samples/s", "MFU", "bubble", "memory (GiB)", "fits"})
    table.table.head.emplace_back(name);
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < report.points.size(); ++p)
    if (is_predicted(report.points[p])) order.push_back(p);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const SweepPoint &left = report.points[a], &right = report.points[b];
    if (left.fits != right.fits) return left.fits;
    return left.samples_per_second > right.samples_per_second;
  });
  if (order.size() > most) order.resize(most);
  for (const std::size_t p : order) {
    const SweepPoint& point = report.points[p];
    std::vector<std::string> row;
    const std::vector<std::size_t> at = coordinates_of(report.axes, p);
    for (std::size_t a = 0; a < at.size(); ++a) row.push_back(report.axes[a].values[at[a]]);
    row.insert(row.end(),
               {readable(point.step), grouped(point.samples_per_second, 2),
                fmt::format("{:.1f} %", 100 * point.mfu),
                fmt::format("{:.1f} %", 100 * point.bubble_fraction),
                fmt::format("{:.1f}", gibibytes(point.peak)), point.fits ? "yes" : "no"});
    table.table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string sweep_page(const SweepReport& report) {
  const Scenario& scenario = report.loaded.scenario;
  Page page;
  page.title = scenario.title.empty()
                   ? fmt::format("Sweep of {} on {}", report.loaded.workload.name,
                                 report.loaded.topology.name)
                   : scenario.title;
  page.kicker = "rehearse sweep: every combination of the axes, simulated";
  page.facts.emplace_back("model", describe(report.loaded.workload));
  for (const Axis& axis : report.axes)
    page.facts.emplace_back(axis.name, fmt::format("{}", fmt::join(axis.values, ", ")));
  const auto predicted = std::count_if(report.points.begin(), report.points.end(), is_predicted);
  page.cards.push_back({"points", grouped(static_cast<std::int64_t>(report.points.size())),
                        fmt::format("{} predicted", predicted)});
  if (const std::size_t best = report.best(); best < report.points.size()) {
    const SweepPoint& point = report.points[best];
    page.cards.push_back({"best step", readable(point.step), words_of(report.axes, best)});
    page.cards.push_back({"best MFU", fmt::format("{:.1f} %", 100 * point.mfu),
                          grouped(point.samples_per_second, 2) + " samples/s"});
  }
  page.tables.push_back(best_points(report));
  const std::vector<ScalingCurve> curves = scaling_curves(report.axes, report.points);
  if (!curves.empty()) {
    page.figures.push_back(scaling(curves, false));
    page.figures.push_back(scaling(curves, true));
  }
  page.figures.push_back(trade_off(report));
  page.transcript = sweep_text(report);
  page.notes.push_back(fmt::format("scenario {}, rehearse {}", fingerprint(scenario), version()));
  page.notes.push_back("Simulated; calibration: " + calibration_words(scenario));
  return html_page(page);
}

}  // namespace rehearse
