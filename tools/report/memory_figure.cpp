// A column of pixels shows the moment within it at which most is held, so no peak is lost.
#include "tools/report/memory_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tools/report/axes.hpp"
#include "tools/report/legend.hpp"

namespace rehearse {

namespace {

constexpr double left = 70, right_margin = 12, panel_height = 170, panel_gap = 30;
constexpr std::size_t most_panels = 4;
constexpr double gib = 1 << 30;

// What is there all the time is at the bottom.
constexpr std::array<Paint, memory_kinds> kind_paints{
    Paint::series_1, Paint::series_2, Paint::series_4, Paint::series_3,     Paint::series_6,
    Paint::series_7, Paint::series_8, Paint::bubble,   Paint::communication};

Bytes total(const MemoryUse& use) { return std::accumulate(use.begin(), use.end(), Bytes{}); }

double gibibytes_of(Bytes bytes) { return static_cast<double>(bytes.count()) / gib; }

// By column of pixels.
std::vector<MemoryUse> columns_of(const std::vector<MemoryMoment>& moments, Time whole,
                                  std::size_t columns) {
  std::vector<MemoryUse> result(columns);
  std::size_t next = 0;
  MemoryUse now{};
  for (std::size_t c = 0; c < columns; ++c) {
    const double end =
        static_cast<double>(whole.ps()) * static_cast<double>(c + 1) / static_cast<double>(columns);
    MemoryUse most = now;
    while (next < moments.size() &&
           (static_cast<double>(moments[next].time.ps()) < end || c + 1 == columns)) {
      now = moments[next++].use;
      if (total(now) > total(most)) most = now;
    }
    result[c] = most;
  }
  return result;
}

// The upper edge of a stack of kinds up to `kind`, as steps from left to right.
std::string edge(const std::vector<MemoryUse>& columns, std::size_t kinds, const Scale& x,
                 const Scale& y, double unit) {
  std::string path;
  Bytes before{-1};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Bytes here = std::accumulate(
        columns[c].begin(), columns[c].begin() + static_cast<std::ptrdiff_t>(kinds), Bytes{});
    if (here == before) continue;
    path +=
        fmt::format("{}{}V{}", path.empty() ? "M" : "H",
                    path.empty() ? fmt::format("{} {}", svg_number(x.begin), svg_number(y.begin))
                                 : svg_number(x(static_cast<double>(c))),
                    svg_number(y(static_cast<double>(here.count()) / unit)));
    before = here;
  }
  return path + fmt::format("H{}V{}z", svg_number(x.end), svg_number(y.begin));
}

struct Panel {
  const RoleReport* report = nullptr;
  std::vector<MemoryUse> columns;
};

// The largest unit that keeps the whole above one.
struct Unit {
  double size;
  std::string_view name;
  double of(Bytes bytes) const { return static_cast<double>(bytes.count()) / size; }
};
Unit unit_for(Bytes bytes) {
  for (const Unit unit : {Unit{1 << 30, "GiB"}, Unit{1 << 20, "MiB"}, Unit{1 << 10, "KiB"}})
    if (unit.of(bytes) >= 1) return unit;
  return {1, "B"};
}

std::string heading(const RoleReport& role, const Unit& unit) {
  std::string text = fmt::format("{}{}: peak {:.4g}", role.name,
                                 role.ranks == 1 ? "" : fmt::format(" × {}", role.ranks),
                                 unit.of(role.peak_bytes));
  if (role.capacity > Bytes{0}) text += fmt::format(" of {:.4g}", unit.of(role.capacity));
  text += fmt::format(" {}", unit.name);
  if (role.capacity > Bytes{0} && role.peak_bytes > role.capacity) text += ": does not fit";
  return text;
}

void draw_panel(Svg& svg, const Panel& panel, Time whole, double width, double top) {
  const RoleReport& role = *panel.report;
  const Bytes most = std::max({role.peak_bytes, role.capacity, Bytes{1}});
  const Unit unit = unit_for(most);
  const Scale x{0, static_cast<double>(panel.columns.size()), left, width - right_margin, false};
  const Scale y{0, unit.of(most) * 1.05, top + panel_height, top + 20, false};
  svg.text(x.begin, top + 12, "tx b", heading(role, unit));
  for (const double tick : y.ticks(4)) {
    svg.line(x.begin, y(tick), x.end, y(tick), "gr");
    svg.text(x.begin - 6, y(tick) + 4, "mu e sm", fmt::format("{:.4g} {}", tick, unit.name));
  }
  // The whole stack first, then less and less of it on top.
  for (std::size_t k = memory_kinds; k > 0; --k) {
    const bool is_there = std::any_of(panel.columns.begin(), panel.columns.end(),
                                      [&](const MemoryUse& use) { return use[k - 1] > Bytes{0}; });
    if (is_there)
      svg.path(edge(panel.columns, k, x, y, unit.size), class_of(kind_paints[k - 1]),
               fmt::format("{}, {}: {:.4g} {} at the peak", role.name,
                           to_string(static_cast<MemoryKind>(k - 1)), unit.of(role.peak[k - 1]),
                           unit.name));
  }
  if (role.capacity > Bytes{0})
    svg.line(x.begin, y(unit.of(role.capacity)), x.end, y(unit.of(role.capacity)),
             role.peak_bytes <= role.capacity ? "hl" : "kl3 th");
  draw_time_axis(svg, whole, x.begin, x.end, top + 20, top + panel_height);
}

// The fullest first, then those in the order of their roles.
std::vector<std::size_t> chosen_roles(const Prediction& prediction) {
  std::vector<std::size_t> roles(prediction.roles.size());
  std::iota(roles.begin(), roles.end(), 0u);
  const auto fullest =
      std::max_element(roles.begin(), roles.end(), [&](std::size_t a, std::size_t b) {
        return prediction.roles[a].peak_bytes < prediction.roles[b].peak_bytes;
      });
  if (fullest != roles.end()) std::rotate(roles.begin(), fullest, fullest + 1);
  if (roles.size() > most_panels) roles.resize(most_panels);
  return roles;
}

FigureTable table_of(const Prediction& prediction) {
  FigureTable table{{"role", "ranks"}, {}};
  for (std::size_t k = 0; k < memory_kinds; ++k)
    table.head.push_back(fmt::format("{} (GiB)", to_string(static_cast<MemoryKind>(k))));
  table.head.insert(table.head.end(), {"peak (GiB)", "capacity (GiB)"});
  constexpr std::size_t most_rows = 64;
  for (std::size_t r = 0; r < std::min(prediction.roles.size(), most_rows); ++r) {
    const RoleReport& role = prediction.roles[r];
    std::vector<std::string> row{role.name, std::to_string(role.ranks)};
    for (const Bytes bytes : role.peak) row.push_back(fmt::format("{:.2f}", gibibytes_of(bytes)));
    row.push_back(fmt::format("{:.2f}", gibibytes_of(role.peak_bytes)));
    row.push_back(fmt::format("{:.2f}", gibibytes_of(role.capacity)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<MemoryMoment> memory_over_time(const Timeline& timeline, const Role& role) {
  struct Change {
    Time time;
    const MemoryChange* change;
  };
  std::vector<Change> changes;
  for (const MemoryChange& change : role.changes) {
    const Timeline::Span& span = timeline.spans[index(change.op)];
    changes.push_back({change.at_end ? span.end : span.begin, &change});
  }
  // What goes at a moment goes first, as in memory_peak().
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.change->bytes < Bytes{0} && b.change->bytes >= Bytes{0};
  });
  std::vector<MemoryMoment> moments{{Time{}, role.at_rest}};
  for (const Change& change : changes) {
    MemoryUse use = moments.back().use;
    use[static_cast<std::size_t>(change.change->kind)] += change.change->bytes;
    if (change.time == moments.back().time && total(use) >= total(moments.back().use))
      moments.back().use = use;
    else
      moments.push_back({change.time, use});
  }
  return moments;
}

Figure memory_figure(const Prediction& prediction, const StepProgram& step,
                     const Timeline& timeline, const FigureSize& size) {
  Figure figure{"memory", "Memory over time", "", "", table_of(prediction), ""};
  const auto columns = static_cast<std::size_t>(size.width - left - right_margin);
  std::vector<Panel> panels;
  std::array<bool, memory_kinds> used{};
  for (const std::size_t r : chosen_roles(prediction)) {
    if (r >= step.roles.size()) continue;
    panels.push_back({&prediction.roles[r], columns_of(memory_over_time(timeline, step.roles[r]),
                                                       timeline.makespan, columns)});
    for (const MemoryUse& use : panels.back().columns)
      for (std::size_t k = 0; k < memory_kinds; ++k) used[k] |= use[k] > Bytes{0};
  }
  figure.description = fmt::format(
      "What {} hold over the step, stacked by kind, against what the device has; the table has "
      "what each kind takes at the peak.",
      prediction.roles.size() > panels.size() ? fmt::format("{} of {} roles (the fullest first)",
                                                            panels.size(), prediction.roles.size())
                                              : "the devices of every role");
  if (panels.empty()) return figure;
  std::vector<LegendEntry> entries;
  for (std::size_t k = 0; k < memory_kinds; ++k)
    if (used[k])
      entries.push_back({kind_paints[k], std::string{to_string(static_cast<MemoryKind>(k))}});
  const Legend legend(std::move(entries), left, size.width);
  Svg svg(size.width,
          legend.height() + static_cast<double>(panels.size()) * (panel_height + panel_gap));
  legend.draw(svg);
  double top = legend.height();
  for (const Panel& panel : panels) {
    draw_panel(svg, panel, timeline.makespan, size.width, top);
    top += panel_height + panel_gap;
  }
  figure.svg = svg.document(figure.title, figure.description);
  return figure;
}

}  // namespace rehearse
