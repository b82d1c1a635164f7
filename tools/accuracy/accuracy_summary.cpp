// Groups are kept in the order of their first row, so that equal files give equal reports.
#include "tools/accuracy/accuracy_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/accuracy/accuracy_statistics.hpp"

namespace rehearse {

namespace {

const MeasuredRow& measured_row(const AccuracyRow& row, const std::vector<MeasuredFile>& files) {
  return files[row.file].rows[row.row];
}

// Rows that ask one question of a layout or an algorithm; empty: the row is in no group.
std::string group_of(const MeasuredRow& row) {
  if (const auto* t = std::get_if<TrainingMeasured>(&row.what))
    return fmt::format("{}|{}|{}|{}|{}|{}", row.sweep, t->model, t->hardware.gpu, t->gpus,
                       t->global_batch, t->seq_len);
  if (const auto* c = std::get_if<CollectiveMeasured>(&row.what))
    return fmt::format("{}|{}|{}|{}|{}|{}|{}", c->hardware.gpu, c->hardware.nodes,
                       c->hardware.gpus_per_node, c->hardware.fabric, c->hardware.intra,
                       c->collective, c->size_bytes);
  return {};
}

struct Pairs {
  std::vector<double> predicted, measured;
};

std::optional<double> correlation(const Pairs& pairs) {
  return spearman(pairs.predicted, pairs.measured);
}

std::optional<double> within_groups(const std::map<std::string, Pairs>& groups) {
  double sum = 0, rows = 0;
  for (const auto& [key, pairs] : groups) {
    if (key.empty() || pairs.measured.size() < 3) continue;
    const std::optional<double> found = correlation(pairs);
    if (!found) continue;
    sum += *found * static_cast<double>(pairs.measured.size());
    rows += static_cast<double>(pairs.measured.size());
  }
  if (rows == 0) return {};
  return sum / rows;
}

void count(MemoryMatrix& memory, const AccuracyRow& row) {
  if (!row.is_predicted() || !row.runs_out || !row.ran_out) return;
  ++(*row.ran_out ? (*row.runs_out ? memory.both : memory.missed)
                  : (*row.runs_out ? memory.false_alarm : memory.neither));
}

struct Band {
  const char* name;
  std::int64_t least, below;
};
constexpr std::int64_t mebi = std::int64_t{1} << 20;
constexpr Band bands[] = {{"size < 1 MiB", 0, mebi},
                          {"size 1 to 64 MiB", mebi, 64 * mebi},
                          {"size >= 64 MiB", 64 * mebi, INT64_MAX}};

void add_bands(const AccuracyRows& rows, const std::vector<MeasuredFile>& files,
               std::vector<AccuracySummary>& all) {
  for (const Band& band : bands) {
    AccuracyRows inside;
    for (const AccuracyRow* row : rows) {
      const auto* c = std::get_if<CollectiveMeasured>(&measured_row(*row, files).what);
      if (c && c->size_bytes >= band.least && c->size_bytes < band.below) inside.push_back(row);
    }
    if (inside.empty()) continue;
    all.push_back(summed_up(inside, files));
    all.back().sweep = band.name;
    all.back().is_band = true;
  }
}

}  // namespace

AccuracySummary summed_up(const AccuracyRows& rows, const std::vector<MeasuredFile>& files) {
  AccuracySummary sum;
  Pairs all;
  std::map<std::string, Pairs> groups;
  std::vector<double> errors;
  double banded = 0, inside = 0;
  for (const AccuracyRow* row : rows) {
    sum.file = files[row->file].name;
    sum.unbuilt += !row->is_predicted();
    count(sum.memory, *row);
    if (!row->is_scored()) continue;
    errors.push_back(std::abs(row->error()));
    if (row->low) ++banded, inside += row->is_inside() ? 1 : 0;
    for (Pairs* pairs : {&all, &groups[group_of(measured_row(*row, files))]}) {
      pairs->predicted.push_back(row->predicted);
      pairs->measured.push_back(*row->measured);
    }
  }
  sum.rows = errors.size();
  if (!errors.empty()) {
    sum.mape = mean_of(errors);
    sum.median_ape = percentile(errors, 0.5);
    sum.p90_ape = percentile(errors, 0.9);
  }
  if (banded > 0) sum.inside = inside / banded;
  sum.spearman = correlation(all);
  sum.spearman_within_groups = within_groups(groups);
  return sum;
}

std::vector<AccuracySummary> summaries(const std::vector<AccuracyRow>& rows,
                                       const std::vector<MeasuredFile>& files) {
  std::vector<AccuracySummary> all;
  for (std::size_t f = 0; f < files.size(); ++f) {
    AccuracyRows whole;
    std::vector<std::pair<std::string, AccuracyRows>> sweeps;
    for (const AccuracyRow& row : rows) {
      if (row.file != f) continue;
      whole.push_back(&row);
      const std::string& name = measured_row(row, files).sweep;
      auto at = std::find_if(sweeps.begin(), sweeps.end(),
                             [&](const auto& sweep) { return sweep.first == name; });
      if (at == sweeps.end()) at = sweeps.insert(at, {name, {}});
      at->second.push_back(&row);
    }
    all.push_back(summed_up(whole, files));
    all.back().file = files[f].name;
    if (files[f].format == "collectives") add_bands(whole, files, all);
    for (const auto& [name, inside] : sweeps) {
      all.push_back(summed_up(inside, files));
      all.back().sweep = name;
    }
  }
  return all;
}

std::vector<ScalingSeries> scaling_series(const std::vector<AccuracyRow>& rows,
                                          const std::vector<MeasuredFile>& files) {
  struct Point {
    std::size_t gpus;
    double measured, predicted;  // samples a second and GPU
  };
  std::vector<std::pair<std::string, std::vector<Point>>> found;
  for (const AccuracyRow& row : rows) {
    const auto* d = std::get_if<DataParallelMeasured>(&measured_row(row, files).what);
    if (!d || d->series.empty() || !row.is_scored()) continue;
    auto at = std::find_if(found.begin(), found.end(),
                           [&](const auto& series) { return series.first == d->series; });
    if (at == found.end()) at = found.insert(at, {d->series, {}});
    const auto samples = static_cast<double>(d->batch_per_gpu * d->grad_accum);
    at->second.push_back({d->gpus, samples / *row.measured, samples / row.predicted});
  }
  std::vector<ScalingSeries> all;
  for (auto& [name, points] : found) {
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) { return a.gpus < b.gpus; });
    const Point& base = points.front();
    ScalingSeries series{.name = name, .fewest = base.gpus, .most = points.back().gpus};
    if (series.fewest == series.most) continue;
    for (const Point& point : points) {
      series.measured_efficiency = point.measured / base.measured;
      series.predicted_efficiency = point.predicted / base.predicted;
      series.worst_points =
          std::max(series.worst_points,
                   100 * std::abs(series.predicted_efficiency - series.measured_efficiency));
    }
    all.push_back(series);
  }
  return all;
}

}  // namespace rehearse
