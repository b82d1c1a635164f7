// Sums over slices, two sides of the same keys.
#include "tools/run/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/engine/explain.hpp"

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

/// By slice: how long its rank did the other kind of thing meanwhile.
std::vector<Time> beside(const Slices& slices) {
  using Spans = std::vector<std::pair<Time, Time>>;
  std::map<std::pair<std::size_t, bool>, Spans> busy;  // by rank and kind; apart from each other
  for (const TraceSlice& slice : slices)
    busy[{slice.rank, slice.communicates}].push_back({slice.begin, slice.end});
  for (auto& [which, spans] : busy) {
    std::sort(spans.begin(), spans.end());
    Spans joined;
    for (const auto& [begin, end] : spans)
      if (joined.empty() || begin > joined.back().second)
        joined.push_back({begin, end});
      else
        joined.back().second = std::max(joined.back().second, end);
    spans = std::move(joined);
  }
  std::vector<Time> shared(slices.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Spans& others = busy[{slices[i].rank, !slices[i].communicates}];
    auto at = std::lower_bound(others.begin(), others.end(), slices[i].begin,
                               [](const auto& span, Time time) { return span.second <= time; });
    for (; at != others.end() && at->first < slices[i].end; ++at)
      shared[i] += std::min(at->second, slices[i].end) - std::max(at->first, slices[i].begin);
  }
  return shared;
}

/// Rows by a key that both sides have, in the order of the keys: the mean over ranks, or the sum
/// where a key names one rank.
enum class Sum : bool { mean_over_ranks, whole };
template <class Key>
std::vector<ComparedRow> rows_by(const Slices& predicted, const Slices& measured, Sum sum,
                                 Key key) {
  std::map<std::string, ComparedRow> rows;
  const auto add = [&](const Slices& slices, Time ComparedRow::*side,
                       Time ComparedRow::*side_beside, bool counts) {
    const auto ranks =
        sum == Sum::whole ? std::int64_t{1} : static_cast<std::int64_t>(rank_count(slices));
    const std::vector<Time> shared = beside(slices);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const std::string name = key(slices[i]);
      if (name.empty()) continue;
      ComparedRow& row = rows[name];
      row.what = name;
      row.communicates = slices[i].communicates;
      row.*side += Time::picoseconds(slices[i].length().ps() / ranks);
      row.*side_beside += Time::picoseconds(shared[i].ps() / ranks);
      row.calls += counts;
    }
  };
  add(predicted, &ComparedRow::predicted, &ComparedRow::predicted_beside, false);
  add(measured, &ComparedRow::measured, &ComparedRow::measured_beside, true);
  std::vector<ComparedRow> sorted;
  for (auto& [name, row] : rows) sorted.push_back(row);
  return sorted;
}

/// The share of all communication during which its rank computes.
double overlap_of(const Slices& slices) {
  const std::vector<Time> shared = beside(slices);
  double all = 0, hidden = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!slices[i].communicates) continue;
    all += slices[i].length().seconds().count();
    hidden += shared[i].seconds().count();
  }
  return all > 0 ? hidden / all : 0;
}

/// "by itself +1.2 ms, beside communication -0.3 ms"
std::string origin(const ComparedRow& row) {
  const auto told = [](Time time) {
    return fmt::format("{:+.3f} ms", time.seconds().count() * 1e3);
  };
  std::string text = fmt::format("by itself {}", told(row.difference_alone()));
  if (row.predicted_beside != Time{} || row.measured_beside != Time{})
    text += fmt::format(", beside {} {}", row.communicates ? "compute" : "communication",
                        told(row.difference_beside()));
  return text;
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

nlohmann::ordered_json json_with_origin(const std::vector<ComparedRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ComparedRow& row : rows) {
    list.push_back(json_of(row));
    list.back()["by_itself_ms"] = row.difference_alone().seconds().count() * 1e3;
    list.back()[row.communicates ? "beside_compute_ms" : "beside_communication_ms"] =
        row.difference_beside().seconds().count() * 1e3;
  }
  return list;
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
  text += "\nthe largest errors, and where they come from\n";
  for (const ComparedRow& row : comparison.largest)
    text += line(row) + fmt::format("  {:<40} {}\n", "", origin(row));
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  const nlohmann::ordered_json document{{"step", json_of(comparison.step)},
                                        {"spread", comparison.spread},
                                        {"phases", json_of(comparison.phases)},
                                        {"collectives", json_of(comparison.collectives)},
                                        {"predicted_overlap", comparison.predicted_overlap},
                                        {"measured_overlap", comparison.measured_overlap},
                                        {"largest_errors", json_with_origin(comparison.largest)}};
  return document.dump(2) + "\n";
}

}  // namespace rehearse
