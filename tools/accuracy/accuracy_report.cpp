// Shares are printed as percent; JSON has them as shares. No wall-clock time is in either.
#include "tools/accuracy/accuracy_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/accuracy/accuracy_statistics.hpp"
#include "tools/accuracy/accuracy_summary.hpp"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

const MeasuredRow& measured_row(const AccuracyReport& report, const AccuracyRow& row) {
  return report.files[row.file].rows[row.row];
}

const char* unit_of(const MeasuredRow& row) {
  const bool in_seconds = std::holds_alternative<TrainingMeasured>(row.what) ||
                          std::holds_alternative<DataParallelMeasured>(row.what);
  return in_seconds ? "s" : "us";
}

std::string name_of(const MeasuredRow& row) {
  const auto* c = std::get_if<CollectiveMeasured>(&row.what);
  return c ? fmt::format("{} at {} B", row.case_id, c->size_bytes) : row.case_id;
}

std::string correlation_text(std::optional<double> found) {
  return found ? fmt::format("{:.2f}", *found) : "-";
}

std::string table_line(const std::string& name, const AccuracySummary& sum) {
  const auto percent = [&](double share) {
    return sum.rows == 0 ? std::string{"-"} : fmt::format("{:.1f} %", 100 * share);
  };
  const std::string memory =
      sum.memory.rows() == 0 ? "-" : fmt::format("{:.1f} %", 100 * sum.memory.accuracy());
  const auto maybe = [](std::optional<double> share) {
    return share ? fmt::format("{:.1f} %", 100 * *share) : std::string{"-"};
  };
  return fmt::format("{:<52}{:>6}{:>10}{:>10}{:>10}{:>7}{:>10}{:>9}{:>9}{:>10}\n", name, sum.rows,
                     percent(sum.mape), percent(sum.median_ape), percent(sum.p90_ape),
                     correlation_text(sum.spearman), correlation_text(sum.spearman_within_groups),
                     memory, maybe(sum.inside), maybe(sum.left_out));
}

std::string memory_text(const MemoryMatrix& memory) {
  if (memory.rows() == 0 || memory.both + memory.missed == 0) return {};
  return fmt::format(
      "Out of memory, {} rows that say: foreseen {}, missed {}, false alarms {}, rightly fits {}: "
      "{:.1f} % right\n",
      memory.rows(), memory.both, memory.missed, memory.false_alarm, memory.neither,
      100 * memory.accuracy());
}

std::string worst_text(const AccuracyReport& report, std::size_t file) {
  std::vector<const AccuracyRow*> rows;
  for (const AccuracyRow& row : report.rows)
    if (row.file == file && row.is_scored()) rows.push_back(&row);
  // By how many times it is off, so that half and double are alike.
  const auto off = [](const AccuracyRow* row) {
    return std::abs(std::log(row->predicted / *row->measured));
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const AccuracyRow* a, const AccuracyRow* b) { return off(a) > off(b); });
  if (rows.size() > report.worst) rows.resize(report.worst);
  if (rows.empty()) return {};
  std::string text = "Worst, by how many times they are off:\n";
  for (const AccuracyRow* row : rows) {
    const MeasuredRow& measured = measured_row(report, *row);
    text += fmt::format("  {}: {:.6g} {} predicted, {:.6g} measured ({:+.0f} %){}{}\n",
                        name_of(measured), row->predicted, unit_of(measured), *row->measured,
                        100 * row->error(), row->detail.empty() ? "" : "; ", row->detail);
  }
  return text;
}

std::string unbuilt_text(const AccuracyReport& report, std::size_t file) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const AccuracyRow& row : report.rows) {
    if (row.file != file || row.is_predicted()) continue;
    auto at = std::find_if(reasons.begin(), reasons.end(),
                           [&](const auto& reason) { return reason.first == row.reason; });
    if (at == reasons.end()) at = reasons.insert(at, {row.reason, {}});
    at->second.push_back(name_of(measured_row(report, row)));
  }
  if (reasons.empty()) return {};
  std::string text = "Not predicted:\n";
  for (const auto& [reason, names] : reasons)
    text += fmt::format("  {} ({}): {}\n", reason, names.size(), fmt::join(names, ", "));
  return text;
}

std::string scaling_text(const std::vector<ScalingSeries>& series) {
  if (series.empty()) return {};
  std::string text =
      fmt::format("{:<52}{:>12}{:>11}{:>11}{:>13}\n", "Scaling efficiency of a series", "GPUs",
                  "measured", "predicted", "worst points");
  std::vector<double> worst;
  for (const ScalingSeries& one : series) {
    text +=
        fmt::format("  {:<50}{:>12}{:>9.1f} %{:>9.1f} %{:>13.1f}\n", one.name,
                    fmt::format("{} to {}", one.fewest, one.most), 100 * one.measured_efficiency,
                    100 * one.predicted_efficiency, one.worst_points);
    worst.push_back(one.worst_points);
  }
  const auto within = std::count_if(worst.begin(), worst.end(), [](double p) { return p <= 5; });
  return text + fmt::format("  {} of {} series within 5 points; median {:.1f}, worst {:.1f}\n",
                            within, series.size(), percentile(worst, 0.5), percentile(worst, 1));
}

// With what was left out, of the sweeps and of each file as a whole.
std::vector<AccuracySummary> sums_of(const AccuracyReport& report) {
  std::vector<AccuracySummary> all = summaries(report.rows, report.files);
  for (AccuracySummary& sum : all) {
    double errors = 0, rows = 0;
    for (const LeftOutSweep& left : report.left_out) {
      if (left.file != sum.file || (!sum.sweep.empty() && left.sweep != sum.sweep)) continue;
      errors += left.mape * static_cast<double>(left.rows);
      rows += static_cast<double>(left.rows);
    }
    if (rows > 0 && !sum.is_band) sum.left_out = errors / rows;
  }
  return all;
}

Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json row_json(const AccuracyReport& report, const AccuracyRow& row) {
  const MeasuredRow& measured = measured_row(report, row);
  Json json{{"file", report.files[row.file].name},
            {"line", measured.line},
            {"case_id", measured.case_id},
            {"sweep", measured.sweep}};
  if (const auto* c = std::get_if<CollectiveMeasured>(&measured.what))
    json["size_bytes"] = c->size_bytes;
  json["unit"] = unit_of(measured);
  json["predicted"] = row.is_predicted() ? Json(row.predicted) : Json(nullptr);
  json["measured"] = number_or_null(row.measured);
  json["error"] = row.is_predicted() && row.measured ? Json(row.error()) : Json(nullptr);
  if (row.low && row.is_predicted()) json["low"] = *row.low, json["high"] = *row.high;
  if (row.noisy) json["noisy"] = true;
  if (row.runs_out) json["oom_predicted"] = *row.runs_out;
  if (row.ran_out) json["oom_measured"] = *row.ran_out;
  if (!row.detail.empty()) json["detail"] = row.detail;
  if (!row.is_predicted()) json["reason"] = row.reason;
  return json;
}

Json summary_json(const AccuracySummary& sum) {
  const auto share = [&](double value) { return sum.rows == 0 ? Json(nullptr) : Json(value); };
  Json json{{"file", sum.file},
            {"sweep", sum.sweep.empty() ? Json(nullptr) : Json(sum.sweep)},
            {"rows", sum.rows},
            {"not_predicted", sum.unbuilt},
            {"mape", share(sum.mape)},
            {"median_ape", share(sum.median_ape)},
            {"p90_ape", share(sum.p90_ape)},
            {"spearman", number_or_null(sum.spearman)},
            {"spearman_within_groups", number_or_null(sum.spearman_within_groups)},
            {"oom_accuracy", nullptr},
            {"inside_band", number_or_null(sum.inside)},
            {"left_out_mape", number_or_null(sum.left_out)}};
  if (sum.memory.rows() > 0) {
    json["oom_accuracy"] = sum.memory.accuracy();
    json["oom"] = {{"foreseen", sum.memory.both},
                   {"missed", sum.memory.missed},
                   {"false_alarms", sum.memory.false_alarm},
                   {"rightly_fits", sum.memory.neither}};
  }
  return json;
}

}  // namespace

std::string accuracy_text(const AccuracyReport& report) {
  std::string text = fmt::format("{:<52}{:>6}{:>10}{:>10}{:>10}{:>7}{:>10}{:>9}{:>9}{:>10}\n",
                                 "Error of the predictions", "rows", "mean", "median", "90th",
                                 "rank", "in groups", "memory", "in band", "left out");
  const std::vector<AccuracySummary> all = sums_of(report);
  for (const AccuracySummary& sum : all) {
    const bool is_file = sum.sweep.empty() && !sum.is_band;
    const bool is_nameless =
        sum.sweep.empty() && &sum != &all.front() && (&sum - 1)->file == sum.file;
    if (is_nameless) continue;  // a file without sweeps: its one line says all
    if (is_file || sum.is_band || report.by_sweep)
      text += table_line(is_file ? sum.file : "  " + sum.sweep, sum);
  }
  for (std::size_t f = 0; f < report.files.size(); ++f) {
    const auto whole = std::find_if(all.begin(), all.end(), [&](const AccuracySummary& sum) {
      return sum.file == report.files[f].name && sum.sweep.empty();
    });
    const std::string more =
        memory_text(whole->memory) + worst_text(report, f) + unbuilt_text(report, f);
    if (!more.empty()) text += fmt::format("\n{}\n{}", report.files[f].name, more);
  }
  const std::string scaling = scaling_text(scaling_series(report.rows, report.files));
  return scaling.empty() ? text : text + "\n" + scaling;
}

std::string accuracy_json(const AccuracyReport& report) {
  Json rows = Json::array(), sums = Json::array(), scaling = Json::array();
  for (const AccuracyRow& row : report.rows) rows.push_back(row_json(report, row));
  for (const AccuracySummary& sum : sums_of(report)) sums.push_back(summary_json(sum));
  for (const ScalingSeries& series : scaling_series(report.rows, report.files))
    scaling.push_back({{"series", series.name},
                       {"fewest_gpus", series.fewest},
                       {"most_gpus", series.most},
                       {"measured_efficiency", series.measured_efficiency},
                       {"predicted_efficiency", series.predicted_efficiency},
                       {"worst_points", series.worst_points}});
  const Json json{
      {"calibration", nullptr}, {"rows", rows}, {"summary", sums}, {"scaling", scaling}};
  return json.dump(2) + "\n";
}

}  // namespace rehearse
