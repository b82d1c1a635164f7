// Curves are cut out of the points; which kind one is shows in its batches.
#include "tools/sweep/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/output/chart.hpp"

namespace rehearse {

namespace {

ScalingKind kind_of(const std::vector<ScalingCurve::Sample>& samples) {
  const ScalingCurve::Sample& first = samples.front();
  bool constant = true, grows = true;
  for (const ScalingCurve::Sample& sample : samples) {
    constant &= sample.samples == first.samples;
    grows &= sample.samples * static_cast<double>(first.ranks) ==
             first.samples * static_cast<double>(sample.ranks);
  }
  if (constant) return ScalingKind::strong;
  return grows ? ScalingKind::weak : ScalingKind::mixed;
}

// One unknown s in y_i = s x_i.
double least_squares(const std::vector<std::pair<double, double>>& xy) {
  double product = 0, square = 0;
  for (const auto& [x, y] : xy) product += x * y, square += x * x;
  return square > 0 ? product / square : 0;
}

void fit(ScalingCurve& curve) {
  std::vector<std::pair<double, double>> xy;
  const ScalingCurve::Sample& first = curve.samples.front();
  for (ScalingCurve::Sample& sample : curve.samples) {
    const double times = static_cast<double>(sample.ranks) / static_cast<double>(first.ranks);
    const double slower = sample.step.seconds().count() / first.step.seconds().count();
    sample.speedup = sample.samples / first.samples / slower;
    sample.efficiency = sample.speedup / times;
    if (curve.kind == ScalingKind::strong) xy.emplace_back(1 - 1 / times, slower - 1 / times);
    if (curve.kind == ScalingKind::weak) xy.emplace_back(times - 1, times - sample.speedup);
  }
  curve.serial_fraction = least_squares(xy);
}

}  // namespace

std::vector<ScalingCurve> scaling_curves(const std::vector<Axis>& axes,
                                         const std::vector<SweepPoint>& points) {
  std::vector<ScalingCurve> curves;
  if (std::none_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.scales(); }))
    return curves;
  std::map<std::vector<std::size_t>, std::size_t> found;  // coordinates of the others, curve
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].status != SweepPoint::Status::predicted) continue;
    std::vector<std::size_t> at = coordinates_of(axes, p);
    std::string title;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].scales()) {
        at[a] = 0;
        continue;
      }
      title +=
          fmt::format("{}{}={}", title.empty() ? "" : " ", axes[a].name, axes[a].values[at[a]]);
    }
    const auto [slot, is_new] = found.try_emplace(at, curves.size());
    if (is_new) curves.push_back({.title = title, .kind = {}, .samples = {}});
    curves[slot->second].samples.push_back({.ranks = points[p].world,
                                            .step = points[p].step,
                                            .samples = points[p].samples,
                                            .fits = points[p].fits});
  }
  std::erase_if(curves, [](const ScalingCurve& curve) { return curve.samples.size() < 2; });
  for (ScalingCurve& curve : curves) {
    std::stable_sort(curve.samples.begin(), curve.samples.end(),
                     [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
    curve.kind = kind_of(curve.samples);
    fit(curve);
  }
  return curves;
}

std::string draw(const ScalingCurve& curve) {
  const ScalingCurve::Sample& first = curve.samples.front();
  std::string text = fmt::format("{} scaling{}{}\n", to_string(curve.kind),
                                 curve.title.empty() ? "" : ": ", curve.title);
  text += fmt::format("  {:>7} {:>11} {:>15} {:>9} {:>9} {:>11}\n", "ranks", "samples", "step (ms)",
                      "speedup", "ideal", "efficiency");
  for (const ScalingCurve::Sample& sample : curve.samples)
    text += fmt::format(
        "  {:>7} {:>11} {:>15} {:>9.2f} {:>9.2f} {:>9.1f} % {}{}\n",
        grouped(static_cast<std::int64_t>(sample.ranks)), grouped(sample.samples, 0),
        grouped(sample.step.seconds().count() * 1e3, 3), sample.speedup,
        static_cast<double>(sample.ranks) / static_cast<double>(first.ranks),
        100 * sample.efficiency, bar(sample.efficiency, 24), sample.fits ? "" : " does not fit");
  if (curve.kind == ScalingKind::strong) {
    text += fmt::format("  serial fraction fitted (Amdahl): {:.2f} %", 100 * curve.serial_fraction);
    if (curve.serial_fraction > 0)
      text += fmt::format("; no number of ranks is more than {} times as fast as {}",
                          grouped(1 / curve.serial_fraction, 1), first.ranks);
    text += "\n";
  } else if (curve.kind == ScalingKind::weak) {
    text += fmt::format("  serial fraction fitted (Gustafson): {:.2f} %\n",
                        100 * curve.serial_fraction);
  } else {
    text += "  batches neither stay the same nor grow with the ranks: no law to fit\n";
  }
  return text;
}

std::string_view to_string(ScalingKind kind) {
  constexpr std::string_view words[] = {"strong", "weak", "mixed"};
  return words[static_cast<std::size_t>(kind)];
}

}  // namespace rehearse
