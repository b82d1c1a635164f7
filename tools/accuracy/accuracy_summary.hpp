// Rows of one sweep, one file or one band of sizes, summed up: errors, ranks, memory, scaling.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tools/accuracy/accuracy_run.hpp"

namespace rehearse {

/// Which rows ran out of memory, and which of them we said would.
struct MemoryMatrix {
  std::size_t both = 0, missed = 0, false_alarm = 0, neither = 0;
  std::size_t rows() const { return both + missed + false_alarm + neither; }
  double accuracy() const {
    return static_cast<double>(both + neither) / static_cast<double>(rows());
  }
};

struct AccuracySummary {
  std::string file, sweep;  // no sweep: the whole file
  bool is_band = false;     // of sizes, over all sweeps
  std::size_t rows = 0;     // scored: predicted, timed and not noisy
  std::size_t unbuilt = 0;
  double mape = 0, median_ape = 0, p90_ape = 0;  // shares, not percent
  std::optional<double> spearman;
  /// Mean over groups of at least three rows with equal model, GPUs, batch and sequence
  /// (collectives: equal machine, collective and size), weighted by their rows.
  std::optional<double> spearman_within_groups;
  MemoryMatrix memory;
  std::optional<double> inside;    // share of the rows with a band whose measurement is in it
  std::optional<double> left_out;  // mean error by constants fitted without the sweep
};

/// Throughput per GPU against the series' row with the fewest GPUs.
struct ScalingSeries {
  std::string name;
  std::size_t fewest = 0, most = 0;                          // GPUs
  double measured_efficiency = 0, predicted_efficiency = 0;  // at the most GPUs
  double worst_points = 0;                                   // percentage points, of any row
};

using AccuracyRows = std::vector<const AccuracyRow*>;

AccuracySummary summed_up(const AccuracyRows& rows, const std::vector<MeasuredFile>& files);

/// Of every file: the whole, its bands of sizes (collectives), its sweeps in order of appearance.
std::vector<AccuracySummary> summaries(const std::vector<AccuracyRow>& rows,
                                       const std::vector<MeasuredFile>& files);

/// Of the data-parallel files, in order of appearance; those with one number of GPUs are none.
std::vector<ScalingSeries> scaling_series(const std::vector<AccuracyRow>& rows,
                                          const std::vector<MeasuredFile>& files);

}  // namespace rehearse
