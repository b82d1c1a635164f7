// Ticks are computed in whole multiples of a step, so that 0.3 is never 0.30000000000000004.
#include "tools/report/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse {

namespace {

double round_step(double range, std::size_t count) {
  const double rough = range / static_cast<double>(std::max<std::size_t>(count, 1));
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

struct TimeUnit {
  double seconds;
  std::string_view name;
};

TimeUnit unit_for(Time whole) {
  constexpr std::array<TimeUnit, 5> units{
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {1e-12, "ps"}}};
  for (const TimeUnit& unit : units)
    if (whole.seconds().count() >= 2 * unit.seconds) return unit;
  return units.back();
}

}  // namespace

std::vector<double> round_ticks(double low, double high, std::size_t count) {
  if (!(low < high) || !std::isfinite(high - low)) return {low};
  const double step = round_step(high - low, count);
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last && ticks.size() < 1000; ++i)
    ticks.push_back(i == 0 ? 0.0 : i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  const bool is_short = std::log10(high / low) < 2.5;
  for (double e = std::floor(std::log10(low)); e <= std::ceil(std::log10(high)); ++e)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, e);
      if (factor > 1 && !is_short) break;
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push_back(value);
    }
  return ticks;
}

std::vector<double> binary_ticks(double low, double high, std::size_t count) {
  const double first = std::ceil(std::log2(low * 0.9999));
  const double last = std::floor(std::log2(high * 1.0001));
  double step = 1;
  for (const double wider : {2.0, 5.0, 10.0})
    if (last - first > step * static_cast<double>(count)) step = wider;
  std::vector<double> ticks;
  for (double e = std::ceil(first / step) * step; e <= last; e += step)
    ticks.push_back(std::exp2(e));
  return ticks;
}

double Scale::operator()(double value) const {
  const double part =
      logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return begin + part * (end - begin);
}

std::vector<double> Scale::ticks(std::size_t about) const {
  if (is_binary) return binary_ticks(low, high, about);
  return logarithmic ? log_ticks(low, high) : round_ticks(low, high, about);
}

Scale log_scale(double least, double most, double begin, double end) {
  if (!(least > 0)) least = 1;
  if (!(most > least)) most = least * 10;
  const double room = std::max(std::pow(most / least, 0.06), 1.15);
  return {least / room, most * room, begin, end, true};
}

std::string short_number(double value) {
  constexpr std::array<std::pair<double, std::string_view>, 4> units{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [size, letter] : units)
    if (std::abs(value) >= size * 0.99999) return fmt::format("{:.4g}{}", value / size, letter);
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

void draw_axes(Svg& svg, const PlotFrame& frame) {
  const Scale &x = frame.x, &y = frame.y;
  for (const double tick : x.ticks(8)) {
    svg.line(x(tick), y.begin, x(tick), y.end, "gr");
    svg.text(x(tick), y.begin + 16, "mu m", frame.x_text(tick));
  }
  for (const double tick : y.ticks(6)) {
    svg.line(x.begin, y(tick), x.end, y(tick), "gr");
    svg.text(x.begin - 6, y(tick) + 4, "mu e", frame.y_text(tick));
  }
  svg.line(x.begin, y.begin, x.end, y.begin, "ax");
  svg.line(x.begin, y.begin, x.begin, y.end, "ax");
  svg.text((x.begin + x.end) / 2, y.begin + 34, "tx m", frame.x_name);
  svg.upward_text(14, (y.begin + y.end) / 2, "tx m", frame.y_name);
}

void draw_time_axis(Svg& svg, Time whole, double x_begin, double x_end, double y_top,
                    double y_bottom) {
  const TimeUnit unit = unit_for(whole);
  const Scale scale{0, whole.seconds().count() / unit.seconds, x_begin, x_end};
  const auto about = static_cast<std::size_t>(std::max(2.0, (x_end - x_begin) / 100));
  for (const double tick : scale.ticks(about)) {
    svg.line(scale(tick), y_top, scale(tick), y_bottom, "gr");
    svg.text(scale(tick), y_bottom + 14, "mu m sm", fmt::format("{:.6g} {}", tick, unit.name));
  }
  svg.line(x_begin, y_bottom, x_end, y_bottom, "ax");
}

}  // namespace rehearse
