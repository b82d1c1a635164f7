// Lines with a mark at every point; the same points are the table.
#include "tools/report/curves_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/report/legend.hpp"

namespace rehearse {

namespace {

constexpr double height = 340, left = 70, right_margin = 18, below = 44;

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

bool can_show(const CurvesPlot& plot, const CurvePoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) && (!plot.x_log || point.x > 0) &&
         (!plot.y_log || point.y > 0);
}

Scale scale_of(const Range& range, bool logarithmic, double begin, double end) {
  if (logarithmic) return log_scale(range.least, range.most, begin, end);
  const double low = std::min(range.least, 0.0);
  const double most = range.most > low ? range.most : low + 1;
  return {low, low + (most - low) * 1.05, begin, end, false};
}

void draw_curve(Svg& svg, const CurvesPlot& plot, const PlotFrame& frame, std::size_t c) {
  const std::string_view name = class_of(series(c));
  std::string line;
  for (const CurvePoint& point : plot.curves[c].points)
    if (can_show(plot, point))
      line += fmt::format("{}{} {}", line.empty() ? "M" : "L", svg_number(frame.x(point.x)),
                          svg_number(frame.y(point.y)));
  if (plot.curves[c].is_joined) svg.path(line, fmt::format("k{} th", name));
  for (const CurvePoint& point : plot.curves[c].points) {
    if (!can_show(plot, point)) continue;
    const double x = frame.x(point.x), y = frame.y(point.y);
    svg.circle(x, y, 4.5, name, point.tip);
    if (point.is_hollow) svg.circle(x, y, 2.5, "bg", point.tip);
  }
}

}  // namespace

Figure curves_figure(const CurvesPlot& plot, const FigureSize& size) {
  Figure figure{plot.name, plot.title, plot.description, "", {}, ""};
  figure.table.head = {"curve", plot.x_name, plot.y_name};
  Range x, y;
  for (const Curve& curve : plot.curves)
    for (const CurvePoint& point : curve.points) {
      if (!can_show(plot, point)) continue;
      x.take(point.x), y.take(point.y);
      figure.table.rows.push_back({curve.name, plot.x_text(point.x), plot.y_text(point.y)});
    }
  if (figure.table.rows.empty()) return figure;
  if (plot.y_most > 0) y.take(plot.y_most);
  std::vector<LegendEntry> entries;
  for (std::size_t c = 0; c < plot.curves.size(); ++c)
    entries.push_back({series(c), plot.curves[c].name});
  const Legend legend(std::move(entries), left, size.width);
  const double top = legend.height() + 6, bottom = top + height - below;
  Scale along = scale_of(x, plot.x_log, left, size.width - right_margin);
  along.is_binary = plot.x_is_binary;
  const PlotFrame frame{along,       scale_of(y, plot.y_log, bottom, top),
                        plot.x_name, plot.y_name,
                        plot.x_text, plot.y_text};
  Svg svg(size.width, bottom + below);
  legend.draw(svg);
  draw_axes(svg, frame);
  for (std::size_t c = 0; c < plot.curves.size(); ++c) draw_curve(svg, plot, frame, c);
  figure.svg = svg.document(figure.title, figure.description);
  return figure;
}

}  // namespace rehearse
