// Predicted against measured: the step, each kind of op, each collective, overlap, and where the
// largest errors come from.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/trace_slices.hpp"

namespace rehearse {

struct ComparedRow {
  std::string what;
  Time predicted, measured;  // the mean over ranks of all its time in the step
  std::size_t calls = 0;     // of all ranks, as measured
  bool communicates = false;
  /// Of these, how long its rank computed beside it, or communicated beside what computes.
  Time predicted_beside, measured_beside;
  Time difference() const { return predicted - measured; }
  /// (predicted - measured) / measured; 0 where nothing was measured.
  double error() const;
  /// Where the difference comes from: time with something beside it, and the op by itself.
  Time difference_beside() const { return predicted_beside - measured_beside; }
  Time difference_alone() const { return difference() - difference_beside(); }
};

struct Comparison {
  ComparedRow step;
  std::vector<ComparedRow> phases;                     // compute by phase
  std::vector<ComparedRow> collectives;                // by label
  double predicted_overlap = 0, measured_overlap = 0;  // share of communication that is hidden
  std::vector<ComparedRow> largest;  // ten ops by label and rank, the largest difference first
  double spread = 0;                 // of the measured step, where it was run several times
};

Comparison compare(const std::vector<TraceSlice>& predicted,
                   const std::vector<TraceSlice>& measured);

std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

}  // namespace rehearse
