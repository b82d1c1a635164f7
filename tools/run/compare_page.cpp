// Each rank has its predicted lanes above its measured ones, on one axis that begins with the first
// op of either side.
#include "tools/run/compare_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/engine/explain.hpp"
#include "tools/cli/version.hpp"
#include "tools/report/html_page.hpp"
#include "tools/report/lanes.hpp"
#include "tools/report/scatter_figure.hpp"

namespace rehearse {

namespace {

using Slices = std::vector<TraceSlice>;

constexpr std::size_t most_ranks = 16, most_data = 30'000;
constexpr double compute_height = 20, exchange_height = 13;

Paint paint_of(const TraceSlice& slice) {
  if (slice.communicates) return Paint::communication;
  for (std::size_t p = 0; p <= static_cast<std::size_t>(Phase::hand_over); ++p)
    if (slice.phase == to_string(static_cast<Phase>(p)))
      return paint_of(static_cast<Phase>(p), false);
  return Paint::forward;
}

Time begin_of(const Slices& slices) {
  Time begin = Time::never();
  for (const TraceSlice& slice : slices) begin = std::min(begin, slice.begin);
  return slices.empty() ? Time{} : begin;
}

std::set<std::size_t> ranks_of(const ComparedSides& sides) {
  std::set<std::size_t> ranks;
  for (const Slices* slices : {&sides.predicted, &sides.measured})
    for (const TraceSlice& slice : *slices) ranks.insert(slice.rank);
  return ranks;
}

/// Boxes by rank, then side (predicted first), then what communicates.
std::map<std::size_t, FigureLane> lanes_of(const ComparedSides& sides, std::size_t ranks) {
  std::map<std::size_t, FigureLane> lanes;
  std::map<std::size_t, std::size_t> place;
  for (const std::size_t rank : ranks_of(sides))
    if (place.size() < ranks) place.emplace(rank, place.size());
  std::size_t side = 0, first = 0;
  for (const Slices* slices : {&sides.predicted, &sides.measured}) {
    const Time begin = begin_of(*slices);
    for (std::size_t i = 0; i < slices->size(); ++i) {
      const TraceSlice& slice = (*slices)[i];
      const auto at = place.find(slice.rank);
      if (at == place.end() || slice.begin >= slice.end) continue;
      FigureLane& lane = lanes[at->second * 4 + side * 2 + slice.communicates];
      if (lane.group.empty())
        lane = {fmt::format("rank {}", slice.rank),
                slice.communicates ? "exchange"
                : side == 0        ? "predicted"
                                   : "measured",
                slice.communicates ? exchange_height : compute_height,
                {}};
      lane.boxes.push_back({slice.begin - begin, slice.end - begin, paint_of(slice),
                            static_cast<std::uint32_t>(first + i)});
    }
    first += slices->size();
    ++side;
  }
  return lanes;
}

Figure timelines(const Comparison& comparison, const ComparedSides& sides) {
  const std::size_t all = ranks_of(sides).size();
  Figure figure{"timelines", "Predicted and measured timeline", "", "", {}, ""};
  figure.description = fmt::format(
      "What ranks do when: of each rank what was predicted ({} in all) above what was measured "
      "({}), on one axis; computes, and below them what is exchanged.",
      readable(comparison.step.predicted), readable(comparison.step.measured));
  if (all > most_ranks)
    figure.description += fmt::format(" The first {} of {} ranks.", most_ranks, all);
  figure.table.head = {"who", "stream", "boxes", "busy"};
  Lanes lanes;
  lanes.whole = std::max(comparison.step.predicted, comparison.step.measured);
  lanes.tell = [&sides](std::uint32_t source) {
    const bool is_predicted = source < sides.predicted.size();
    const TraceSlice& slice =
        is_predicted ? sides.predicted[source] : sides.measured[source - sides.predicted.size()];
    return BoxWords{slice.label,
                    fmt::format("{}{}{}, {}", slice.label, slice.phase.empty() ? "" : ", ",
                                slice.phase, is_predicted ? "predicted" : "measured"),
                    ""};
  };
  for (auto& [key, lane] : lanes_of(sides, most_ranks)) {
    Time busy;
    for (const LaneBox& box : lane.boxes) busy += box.end - box.begin;
    figure.table.rows.push_back(
        {lane.group, lane.name, std::to_string(lane.boxes.size()), readable(busy)});
    for (FigureLane& one : unlapped(std::move(lane))) lanes.lanes.push_back(std::move(one));
  }
  if (lanes.lanes.empty()) return figure;
  figure.svg = draw_lanes(lanes, {}, figure.title, figure.description);
  figure.data = lanes_data(lanes, most_data);
  return figure;
}

Figure scatter(const Comparison& comparison) {
  ScatterPlot plot{"scatter",
                   "Predicted against measured, the mean over ranks",
                   "us",
                   {"compute by phase", "collectives", "step"},
                   {}};
  const auto add = [&](const ComparedRow& row, std::size_t group) {
    plot.points.push_back({row.measured.seconds().count() * 1e6,
                           row.predicted.seconds().count() * 1e6, row.what, group});
  };
  for (const ComparedRow& row : comparison.phases) add(row, 0);
  for (const ComparedRow& row : comparison.collectives) add(row, 1);
  add(comparison.step, 2);
  return scatter_figure(plot);
}

PageTable table_of(std::string title, const std::vector<ComparedRow>& rows) {
  PageTable table{std::move(title), {{"what", "predicted", "measured", "error", "calls"}, {}}};
  for (const ComparedRow& row : rows)
    table.table.rows.push_back({row.what, readable(row.predicted), readable(row.measured),
                                fmt::format("{:+.1f} %", 100 * row.error()),
                                std::to_string(row.calls)});
  return table;
}

}  // namespace

std::string compare_page(const Comparison& comparison, const ComparedSides& sides) {
  Page page;
  page.title = sides.title;
  page.kicker = "rehearse compare: predicted against measured";
  page.facts = sides.facts;
  page.cards = {
      {"step predicted", readable(comparison.step.predicted), ""},
      {"step measured", readable(comparison.step.measured),
       comparison.spread > 0
           ? fmt::format("{:.1f} % spread from run to run", 100 * comparison.spread)
           : ""},
      {"error", fmt::format("{:+.1f} %", 100 * comparison.step.error()), "of the measured step"},
      {"hidden communication", fmt::format("{:.1f} %", 100 * comparison.predicted_overlap),
       fmt::format("predicted; measured {:.1f} %", 100 * comparison.measured_overlap)}};
  page.figures = {timelines(comparison, sides), scatter(comparison)};
  std::vector<ComparedRow> parts = comparison.phases;
  parts.insert(parts.end(), comparison.collectives.begin(), comparison.collectives.end());
  page.tables = {table_of("Where it goes, the mean over ranks", parts),
                 table_of("The largest errors", comparison.largest)};
  page.transcript = comparison_text(comparison);
  page.notes.push_back(fmt::format("rehearse {}; the two sides are never mixed.", version()));
  return html_page(page);
}

}  // namespace rehearse
