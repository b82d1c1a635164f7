// Kernels are summed by phase for each role; what is exposed and idle comes from the accounts.
#include "tools/report/breakdown_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/engine/explain.hpp"
#include "tools/report/legend.hpp"
#include "tools/report/op_words.hpp"
#include "tools/report/svg.hpp"

namespace rehearse {

namespace {

constexpr double bar_height = 24, bar_gap = 6, right_margin = 12;
constexpr std::size_t most_roles = 24, phase_count = static_cast<std::size_t>(Phase::hand_over) + 1;

struct Part {
  Paint paint{};
  std::string words, mark;  // in full, and short enough to stand in the bar
  double seconds = 0;
};
using Parts = std::vector<Part>;
using PhaseSeconds = std::array<double, phase_count>;

std::map<Rank, PhaseSeconds> phases_by_rank(const StepProgram& step, const Timeline& timeline,
                                            double steps) {
  std::map<Rank, PhaseSeconds> seconds;
  for (const Role& role : step.roles) seconds[role.rank] = {};
  for (std::size_t i = 0; i < step.tags.size(); ++i) {
    if (step.tags[i].communicates || step.program.ops()[i].kind != WorkKind::compute) continue;
    const Timeline::Span& span = timeline.spans[i];
    seconds[step.program.ops()[i].rank][static_cast<std::size_t>(step.tags[i].phase)] +=
        (span.end - span.begin).seconds().count() / steps;
  }
  return seconds;
}

Parts parts_of(const PhaseSeconds& phases, const TimeUse& use) {
  Parts parts;
  for (std::size_t p = 0; p < phase_count; ++p) {
    std::string words{to_string(static_cast<Phase>(p))};
    std::replace(words.begin(), words.end(), '_', ' ');
    if (phases[p] > 0)
      parts.push_back({paint_of(static_cast<Phase>(p), false), words, words, phases[p]});
  }
  for (std::size_t d = 0; d < dimension_count; ++d) {
    const auto dimension = static_cast<Dimension>(d);
    if (use.exposed[d] > Time{})
      parts.push_back({Paint::communication, fmt::format("exposed {}", to_string(dimension)),
                       std::string{short_name(dimension)}, use.exposed[d].seconds().count()});
  }
  if (use.bubble > Time{})
    parts.push_back({Paint::bubble, "bubble", "bubble", use.bubble.seconds().count()});
  return parts;
}

struct Bar {
  std::string name;
  Parts parts;
};

std::vector<Bar> bars_of(const Prediction& prediction, const StepProgram& step,
                         const Timeline& timeline) {
  const double steps =
      std::round(timeline.makespan.seconds().count() / prediction.step.seconds().count());
  const std::map<Rank, PhaseSeconds> phases = phases_by_rank(step, timeline, std::max(steps, 1.0));
  PhaseSeconds mean{};
  double ranks = 0;
  for (const Role& role : step.roles) ranks += role.ranks;
  for (const Role& role : step.roles)
    for (std::size_t p = 0; p < phase_count; ++p)
      mean[p] += phases.at(role.rank)[p] * role.ranks / ranks;
  std::vector<Bar> bars{{"mean over ranks", parts_of(mean, prediction.mean)}};
  if (prediction.roles.size() < 2) return bars;
  for (std::size_t r = 0; r < std::min(prediction.roles.size(), most_roles); ++r) {
    const RoleReport& role = prediction.roles[r];
    bars.push_back({role.ranks == 1 ? role.name : fmt::format("{} × {}", role.name, role.ranks),
                    parts_of(phases.at(role.rank), role.time)});
  }
  return bars;
}

void draw_bar(Svg& svg, const Bar& bar, double step, double left, double right, double y) {
  svg.text(2, y + bar_height / 2 + 4, "tx b", fitted(bar.name, left - 8));
  double seconds = 0;
  const auto x = [&](double time) { return left + (right - left) * time / step; };
  for (const Part& part : bar.parts) {
    const double begin = x(seconds), end = x(seconds + part.seconds);
    seconds += part.seconds;
    const double share = 100 * part.seconds / step;
    const std::string time = readable(Time::round(Seconds{part.seconds}));
    svg.rect(begin, y, std::max(end - begin - (end - begin > 3 ? 0.6 : 0), 0.0), bar_height,
             class_of(part.paint),
             fmt::format("{}, {}: {}, {:.1f} % of the step", bar.name, part.words, time, share));
    for (const std::string& mark : {fmt::format("{} {:.1f} %", part.mark, share), part.mark})
      if (6.2 * static_cast<double>(mark.size()) + 4 < end - begin) {
        svg.text((begin + end) / 2, y + bar_height / 2 + 3.6,
                 fmt::format("t{} m sm", class_of(part.paint)), mark);
        break;
      }
  }
}

FigureTable table_of(const std::vector<Bar>& bars, double step) {
  FigureTable table{{"who", "part", "time", "share of the step"}, {}};
  for (const Bar& bar : bars)
    for (const Part& part : bar.parts)
      table.rows.push_back({bar.name, part.words, readable(Time::round(Seconds{part.seconds})),
                            fmt::format("{:.2f} %", 100 * part.seconds / step)});
  return table;
}

}  // namespace

Figure breakdown_figure(const Prediction& prediction, const StepProgram& step,
                        const Timeline& timeline, const FigureSize& size) {
  const std::vector<Bar> bars = bars_of(prediction, step, timeline);
  const double seconds = prediction.step.seconds().count();
  Figure figure{"breakdown", "Where the step goes", "", "", table_of(bars, seconds), ""};
  figure.description = fmt::format(
      "Bars of one step, {}: kernels by phase, communication that nothing hides, and idle time. "
      "The mean over all ranks is first, then the roles.",
      readable(prediction.step));
  if (prediction.roles.size() > most_roles)
    figure.description +=
        fmt::format(" The first {} of {} roles.", most_roles, prediction.roles.size());
  std::map<Paint, std::string> used;
  for (const Bar& bar : bars)
    for (const Part& part : bar.parts)
      used.try_emplace(part.paint, part.paint == Paint::communication
                                       ? std::string{"exposed communication"}
                                       : std::string{colours(part.paint).words});
  const double left = size.width < 700 ? 104 : 168, right = size.width - right_margin;
  std::vector<LegendEntry> entries;
  for (const auto& [paint, words] : used) entries.push_back({paint, words});
  const Legend legend(std::move(entries), left, size.width);
  Svg svg(size.width, legend.height() + static_cast<double>(bars.size()) * (bar_height + bar_gap));
  legend.draw(svg);
  double y = legend.height();
  for (const Bar& bar : bars) {
    draw_bar(svg, bar, seconds, left, right, y);
    y += bar_height + bar_gap;
  }
  figure.svg = svg.document(figure.title, figure.description);
  return figure;
}

}  // namespace rehearse
