// Both axes have the same range, so that the diagonal is one; a band of half and double is drawn.
#include "tools/report/scatter_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "tools/report/axes.hpp"
#include "tools/report/legend.hpp"

namespace rehearse {

namespace {

constexpr double left = 70, below = 44, right_margin = 18;
constexpr std::size_t most_rows = 200;  // of the table; the command's JSON has all

bool can_show(const ScatterPoint& point) {
  return std::isfinite(point.measured) && std::isfinite(point.predicted) && point.measured > 0 &&
         point.predicted > 0;
}

double off_by(const ScatterPoint& point) {
  return std::abs(std::log(point.predicted / point.measured));
}

std::string tip_of(const ScatterPoint& point, const std::string& unit, std::size_t also) {
  std::string tip = fmt::format("{}: predicted {:.4g} {}, measured {:.4g} {} ({:+.0f} %)",
                                point.name, point.predicted, unit, point.measured, unit,
                                100 * (point.predicted / point.measured - 1));
  if (also > 0) tip += fmt::format("; and {} more here", also);
  return tip;
}

// A line of predicted = factor · measured, as far as it is inside.
void draw_ray(Svg& svg, const PlotFrame& frame, double factor, std::string_view classes) {
  const double low = std::max(frame.x.low, frame.y.low / factor);
  const double high = std::min(frame.x.high, frame.y.high / factor);
  if (low >= high) return;
  svg.line(frame.x(low), frame.y(low * factor), frame.x(high), frame.y(high * factor), classes);
}

void draw_points(Svg& svg, const ScatterPlot& plot, const PlotFrame& frame) {
  struct Spot {
    const ScatterPoint* worst = nullptr;
    std::size_t count = 0;
  };
  std::map<std::tuple<std::size_t, long, long>, Spot> spots;
  for (const ScatterPoint& point : plot.points) {
    if (!can_show(point)) continue;
    Spot& spot = spots[{point.group, std::lround(frame.x(point.measured)),
                        std::lround(frame.y(point.predicted))}];
    if (spot.worst == nullptr || off_by(point) > off_by(*spot.worst)) spot.worst = &point;
    ++spot.count;
  }
  for (const auto& [key, spot] : spots)
    svg.circle(frame.x(spot.worst->measured), frame.y(spot.worst->predicted), 3.5,
               class_of(series(std::get<0>(key))), tip_of(*spot.worst, plot.unit, spot.count - 1));
}

FigureTable table_of(const ScatterPlot& plot) {
  FigureTable table{
      {"case", "group", "predicted (" + plot.unit + ")", "measured (" + plot.unit + ")", "error"},
      {}};
  std::vector<const ScatterPoint*> points;
  for (const ScatterPoint& point : plot.points)
    if (can_show(point)) points.push_back(&point);
  std::stable_sort(points.begin(), points.end(), [](const ScatterPoint* a, const ScatterPoint* b) {
    return off_by(*a) > off_by(*b);
  });
  if (points.size() > most_rows) points.resize(most_rows);
  for (const ScatterPoint* point : points)
    table.rows.push_back(
        {point->name, plot.groups[point->group], fmt::format("{:.4g}", point->predicted),
         fmt::format("{:.4g}", point->measured),
         fmt::format("{:+.1f} %", 100 * (point->predicted / point->measured - 1))});
  return table;
}

}  // namespace

Figure scatter_figure(const ScatterPlot& plot, const FigureSize& size) {
  Figure figure{plot.name, plot.title, "", "", table_of(plot), ""};
  const auto shown =
      static_cast<std::size_t>(std::count_if(plot.points.begin(), plot.points.end(), can_show));
  figure.description = fmt::format(
      "{} cases, predicted against measured in {}. On the line they are equal, above it the "
      "prediction is too slow; the thin lines are half and double. The table has the {}, the "
      "farthest off first.",
      shown, plot.unit, shown > most_rows ? fmt::format("{} worst", most_rows) : "same cases");
  if (shown == 0) return figure;
  double least = INFINITY, most = 0;
  for (const ScatterPoint& point : plot.points)
    if (can_show(point)) {
      least = std::min({least, point.measured, point.predicted});
      most = std::max({most, point.measured, point.predicted});
    }
  std::vector<LegendEntry> entries;
  for (std::size_t g = 0; g < plot.groups.size(); ++g)
    entries.push_back({series(g), plot.groups[g]});
  // Square where there is room, and never wider than high screens are.
  const double side = std::min(size.width - left - right_margin, 620.0);
  const Legend legend(std::move(entries), left, left + side);
  const double top = legend.height() + 6, bottom = top + side;
  const PlotFrame frame{
      log_scale(least, most, left, left + side), log_scale(least, most, bottom, top),
      fmt::format("measured ({})", plot.unit), fmt::format("predicted ({})", plot.unit)};
  Svg svg(left + side + right_margin, bottom + below);
  legend.draw(svg);
  draw_axes(svg, frame);
  draw_ray(svg, frame, 1, "hl");
  for (const double factor : {0.5, 2.0}) draw_ray(svg, frame, factor, "ax");
  draw_points(svg, plot, frame);
  figure.svg = svg.document(figure.title, figure.description);
  return figure;
}

}  // namespace rehearse
