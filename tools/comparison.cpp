// Sums over slices, two sides of the same keys.
#include "tools/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/explain.hpp"

namespace rehearse {

namespace {

using Slices = std::vector<TraceSlice>;

std::size_t rank_count(const Slices& slices) {
  std::set<std::size_t> ranks;
  for (const TraceSlice& slice : slices) ranks.insert(slice.rank);
  return std::max<std::size_t>(ranks.size(), 1);
}

Time step_of(const Slices& slices) {
  Time begin = Time::never(), end;
  for (const TraceSlice& slice : slices) {
    begin = std::min(begin, slice.begin);
    end = std::max(end, slice.end);
  }
  return slices.empty() ? Time{} : end - begin;
}

/// Rows by a key that both sides have, in the order of the keys: the mean over ranks, or the sum
/// where a key names one rank.
enum class Sum : bool { mean_over_ranks, whole };
template <class Key>
std::vector<ComparedRow> rows_by(const Slices& predicted, const Slices& measured, Sum sum,
                                 Key key) {
  std::map<std::string, ComparedRow> rows;
  const auto add = [&](const Slices& slices, Time ComparedRow::*side, bool counts) {
    const auto ranks =
        sum == Sum::whole ? std::int64_t{1} : static_cast<std::int64_t>(rank_count(slices));
    for (const TraceSlice& slice : slices) {
      const std::string name = key(slice);
      if (name.empty()) continue;
      ComparedRow& row = rows[name];
      row.what = name;
      row.*side += Time::picoseconds(slice.length().ps() / ranks);
      row.calls += counts;
    }
  };
  add(predicted, &ComparedRow::predicted, false);
  add(measured, &ComparedRow::measured, true);
  std::vector<ComparedRow> sorted;
  for (auto& [name, row] : rows) sorted.push_back(row);
  return sorted;
}

/// The share of all communication during which its rank computes.
double overlap_of(const Slices& slices) {
  std::map<std::size_t, std::vector<std::pair<Time, Time>>> computing;
  for (const TraceSlice& slice : slices)
    if (!slice.communicates) computing[slice.rank].push_back({slice.begin, slice.end});
  for (auto& [rank, busy] : computing) std::sort(busy.begin(), busy.end());
  double all = 0, hidden = 0;
  for (const TraceSlice& slice : slices) {
    if (!slice.communicates) continue;
    all += slice.length().seconds().count();
    Time from = slice.begin;
    for (const auto& [begin, end] : computing[slice.rank]) {
      if (end <= from) continue;
      if (begin >= slice.end) break;
      const Time until = std::min(end, slice.end), since = std::max(begin, from);
      if (until > since) hidden += (until - since).seconds().count();
      from = std::max(from, until);
    }
  }
  return all > 0 ? hidden / all : 0;
}

std::string line(const ComparedRow& row) {
  return fmt::format("  {:<40} {:>11} {:>11} {:>+8.1f} %  {}\n", row.what.substr(0, 40),
                     readable(row.predicted), readable(row.measured), 100 * row.error(),
                     row.calls > 0 ? fmt::format("{} calls", row.calls) : "");
}

nlohmann::ordered_json json_of(const ComparedRow& row) {
  return {{"what", row.what},
          {"predicted_ms", row.predicted.seconds().count() * 1e3},
          {"measured_ms", row.measured.seconds().count() * 1e3},
          {"error", row.error()},
          {"calls", row.calls}};
}

nlohmann::ordered_json json_of(const std::vector<ComparedRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ComparedRow& row : rows) list.push_back(json_of(row));
  return list;
}

}  // namespace

double ComparedRow::error() const {
  if (measured == Time{}) return 0;
  return difference().seconds().count() / measured.seconds().count();
}

Comparison compare(const Slices& predicted, const Slices& measured) {
  Comparison made;
  made.step = {"step", step_of(predicted), step_of(measured), 0};
  made.phases = rows_by(predicted, measured, Sum::mean_over_ranks, [](const TraceSlice& slice) {
    return slice.communicates ? std::string{}
                              : "compute " + (slice.phase.empty() ? slice.label : slice.phase);
  });
  made.collectives = rows_by(
      predicted, measured, Sum::mean_over_ranks,
      [](const TraceSlice& slice) { return slice.communicates ? slice.label : std::string{}; });
  made.predicted_overlap = overlap_of(predicted);
  made.measured_overlap = overlap_of(measured);
  made.largest = rows_by(predicted, measured, Sum::whole, [](const TraceSlice& slice) {
    return fmt::format("{} on rank {}{}", slice.label, slice.rank,
                       slice.phase.empty() ? "" : ", " + slice.phase);
  });
  std::stable_sort(made.largest.begin(), made.largest.end(),
                   [](const ComparedRow& a, const ComparedRow& b) {
                     return std::abs(a.difference().ps()) > std::abs(b.difference().ps());
                   });
  if (made.largest.size() > 10) made.largest.resize(10);
  return made;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text =
      fmt::format("  {:<40} {:>11} {:>11} {:>10}\n", "", "predicted", "measured", "error");
  text += line(comparison.step);
  if (comparison.spread > 0)
    text += fmt::format("  {:<40} {:>11} {:>10.1f} %\n", "its spread from run to run", "",
                        100 * comparison.spread);
  text += "\nwhere it goes, the mean over ranks\n";
  for (const ComparedRow& row : comparison.phases) text += line(row);
  for (const ComparedRow& row : comparison.collectives) text += line(row);
  text += fmt::format("  {:<40} {:>9.1f} % {:>9.1f} %\n", "communication hidden behind compute",
                      100 * comparison.predicted_overlap, 100 * comparison.measured_overlap);
  text += "\nthe largest errors\n";
  for (const ComparedRow& row : comparison.largest) text += line(row);
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  const nlohmann::ordered_json document{{"step", json_of(comparison.step)},
                                        {"spread", comparison.spread},
                                        {"phases", json_of(comparison.phases)},
                                        {"collectives", json_of(comparison.collectives)},
                                        {"predicted_overlap", comparison.predicted_overlap},
                                        {"measured_overlap", comparison.measured_overlap},
                                        {"largest_errors", json_of(comparison.largest)}};
  return document.dump(2) + "\n";
}

}  // namespace rehearse
