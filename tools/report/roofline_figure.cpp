// Both axes logarithmic; a roof for each precision whose peak the kernels are bound by.
#include "tools/report/roofline_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "sim/engine/explain.hpp"
#include "tools/report/axes.hpp"
#include "tools/report/legend.hpp"

namespace rehearse {

namespace {

constexpr double height = 400, left = 76, right_margin = 18, below = 44;

struct KernelSum {
  std::string name;
  Paint paint{};
  double flops = 0, bytes = 0, seconds = 0;
  std::size_t calls = 0;
  double intensity() const { return flops / bytes; }
  double rate() const { return flops / seconds; }
  bool can_show() const { return flops > 0 && bytes > 0 && seconds > 0; }
};

// By name, the longest first. A role counts as often as it has ranks.
std::vector<KernelSum> kernels_of(const StepProgram& step, const Timeline& timeline) {
  std::map<Rank, double> weight;
  for (const Role& role : step.roles) weight[role.rank] = role.ranks;
  std::vector<KernelSum> kernels(step.program.names().size());
  for (std::size_t i = 0; i < step.program.size(); ++i) {
    const Program::Op& op = step.program.ops()[i];
    if (op.kind != WorkKind::compute || step.tags[i].communicates) continue;
    const Compute& work = step.program.compute(op);
    KernelSum& kernel = kernels[op.label.name];
    const double times = weight[op.rank];
    kernel.name = step.program.names()[op.label.name];
    kernel.paint = paint_of(step.tags[i].phase, false);
    kernel.flops += times * work.flops.count();
    kernel.bytes += times * static_cast<double>(work.traffic.count());
    kernel.seconds += times * (timeline.spans[i].end - timeline.spans[i].begin).seconds().count();
    ++kernel.calls;
  }
  std::erase_if(kernels, [](const KernelSum& kernel) { return !(kernel.seconds > 0); });
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelSum& a, const KernelSum& b) { return a.seconds > b.seconds; });
  return kernels;
}

struct Roof {
  std::string name;
  double rate = 0;
};

// The step's own peak, and those of the device that lie below it.
std::vector<Roof> roofs_of(const Accelerator& device, FlopsPerSecond peak) {
  std::vector<Roof> roofs;
  for (const Accelerator::Peak& one : device.peaks)
    if (one.rate.count() <= peak.count() * 1.0001) {
      const auto same = std::find_if(roofs.begin(), roofs.end(), [&](const Roof& roof) {
        return roof.rate == one.rate.count();
      });
      if (same == roofs.end())
        roofs.push_back({one.precision, one.rate.count()});
      else
        same->name += ", " + one.precision;
    }
  if (roofs.empty()) roofs.push_back({"peak", peak.count()});
  return roofs;
}

void draw_roofs(Svg& svg, const PlotFrame& frame, const std::vector<Roof>& roofs,
                const Accelerator& device) {
  const double bandwidth = device.memory_bandwidth.count();
  double highest = 0;
  for (const Roof& roof : roofs) {
    const double ridge = std::clamp(roof.rate / bandwidth, frame.x.low, frame.x.high);
    if (roof.rate < frame.y.low || roof.rate > frame.y.high) continue;
    svg.line(frame.x(ridge), frame.y(roof.rate), frame.x.end, frame.y(roof.rate), "hl");
    // Left of its ridge, where no kernel can be; beyond it where the axis is in the way.
    const std::string words = fmt::format("{}: {}FLOP/s", roof.name, short_number(roof.rate));
    if (frame.x(ridge) - frame.x.begin > 6.2 * static_cast<double>(words.size()) + 12)
      svg.text(frame.x(ridge) - 6, frame.y(roof.rate) + 3, "tx sm e", words);
    else
      svg.text(frame.x(ridge) + 6, frame.y(roof.rate) - 5, "tx sm", words);
    highest = std::max(highest, roof.rate);
  }
  const double low = std::max(frame.x.low, frame.y.low / bandwidth);
  const double high = std::min(frame.x.high, highest / bandwidth);
  if (low >= high) return;
  svg.line(frame.x(low), frame.y(low * bandwidth), frame.x(high), frame.y(high * bandwidth), "hl");
  const double middle = std::sqrt(low * high);
  svg.text(frame.x(middle) - 8, frame.y(middle * bandwidth) - 4, "tx sm e",
           fmt::format("memory: {}", readable(device.memory_bandwidth)));
}

std::string tip_of(const KernelSum& kernel, double all, double roof) {
  return fmt::format(
      "{}: {:.1f} % of the kernels' time, {:.4g} FLOP/B, {}FLOP/s, {:.0f} % of what "
      "the roofline allows",
      kernel.name, 100 * kernel.seconds / all, kernel.intensity(), short_number(kernel.rate()),
      100 * kernel.rate() / roof);
}

struct Extent {
  double all = 0, unshown = 0;  // seconds
  double least_x = INFINITY, most_x = 0, least_y = INFINITY;
};

Extent extent_of(const std::vector<KernelSum>& kernels) {
  Extent extent;
  for (const KernelSum& kernel : kernels) {
    extent.all += kernel.seconds;
    if (!kernel.can_show()) {
      extent.unshown += kernel.seconds;
      continue;
    }
    extent.least_x = std::min(extent.least_x, kernel.intensity());
    extent.most_x = std::max(extent.most_x, kernel.intensity());
    extent.least_y = std::min(extent.least_y, kernel.rate());
  }
  return extent;
}

FigureTable table_of(const std::vector<KernelSum>& kernels, double all) {
  FigureTable table{{"kernel", "calls", "share of kernels' time", "FLOP/B", "FLOP/s"}, {}};
  for (const KernelSum& kernel : kernels)
    table.rows.push_back({kernel.name, std::to_string(kernel.calls),
                          fmt::format("{:.2f} %", 100 * kernel.seconds / all),
                          kernel.can_show() ? fmt::format("{:.4g}", kernel.intensity()) : "-",
                          kernel.can_show() ? short_number(kernel.rate()) : "-"});
  return table;
}

Legend legend_of(const std::vector<KernelSum>& kernels, double width) {
  std::map<Paint, std::string> used;
  for (const KernelSum& kernel : kernels)
    if (kernel.can_show()) used[kernel.paint] = colours(kernel.paint).words;
  std::vector<LegendEntry> entries;
  for (const auto& [paint, words] : used) entries.push_back({paint, words});
  return {std::move(entries), left, width};
}

}  // namespace

Figure roofline_figure(const StepProgram& step, const Timeline& timeline, const Accelerator& device,
                       FlopsPerSecond peak, const FigureSize& size) {
  const std::vector<KernelSum> kernels = kernels_of(step, timeline);
  const Extent extent = extent_of(kernels);
  Figure figure{"roofline", "Roofline", "", "", table_of(kernels, extent.all), ""};
  figure.description = fmt::format(
      "Kernels of the step on {}: operations for each byte of memory traffic, and operations a "
      "second. Each is as large as its share of the time; the lines are what the device allows.",
      device.name.empty() ? "the device" : device.name);
  if (extent.unshown > 0)
    figure.description +=
        fmt::format(" Kernels that only move data ({:.1f} % of the time) have no place here.",
                    100 * extent.unshown / extent.all);
  const double bandwidth = device.memory_bandwidth.count();
  if (!(extent.most_x > 0) || !(peak.count() > 0) || !(bandwidth > 0)) return figure;
  const double ridge = peak.count() / bandwidth;
  const Legend legend = legend_of(kernels, size.width);
  const double top = legend.height() + 6, bottom = top + height - below;
  const PlotFrame frame{
      log_scale(std::min(extent.least_x, ridge / 10), std::max(extent.most_x, ridge * 4), left,
                size.width - right_margin),
      log_scale(extent.least_y, peak.count() * 1.3, bottom, top), "arithmetic intensity (FLOP/B)",
      "FLOP/s"};
  Svg svg(size.width, bottom + below);
  legend.draw(svg);
  draw_axes(svg, frame);
  draw_roofs(svg, frame, roofs_of(device, peak), device);
  for (const KernelSum& kernel : kernels) {
    if (!kernel.can_show()) continue;
    const double roof = std::min(peak.count(), kernel.intensity() * bandwidth);
    svg.circle(frame.x(kernel.intensity()), frame.y(kernel.rate()),
               3 + 22 * std::sqrt(kernel.seconds / extent.all), class_of(kernel.paint),
               tip_of(kernel, extent.all, roof));
  }
  figure.svg = svg.document(figure.title, figure.description);
  return figure;
}

}  // namespace rehearse
