// Predicts every row of some files of measurements, on several threads, with the same result
// whatever their number.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/calibration.hpp"
#include "tools/accuracy/measured_rows.hpp"

namespace rehearse {

/// What became of one row.
struct AccuracyRow {
  std::size_t file = 0, row = 0;    // which one
  std::string reason;               // why there is no prediction; empty: there is one
  double predicted = 0;             // in the file's unit: us of collectives and kernels, else s
  std::optional<double> measured;   // none: it ended out of memory
  std::optional<double> low, high;  // of ten measured, eight should lie between these
  std::optional<bool> runs_out, ran_out;  // of memory, predicted and measured
  bool noisy = false;                     // shown, not scored
  std::string detail;                     // the algorithm chosen, or where the step goes

  bool is_inside() const { return *measured >= *low && *measured <= *high; }
  bool is_predicted() const { return reason.empty(); }
  bool is_scored() const { return is_predicted() && measured && !noisy; }
  /// (predicted - measured) / measured.
  double error() const { return (predicted - *measured) / *measured; }
};

struct AccuracyJob {
  const std::vector<MeasuredFile>& files;
  std::size_t threads = 1;
  std::optional<Calibration> calibration{};  // laid over the machines that it knows
  std::function<void(std::size_t done, std::size_t all)> progress;  // now and then
};

/// In the order of the files and their rows.
std::vector<AccuracyRow> run_accuracy(const AccuracyJob& job);

}  // namespace rehearse
