// A line through measurements, the way alpha and beta are found: what is fitted is the relative
// error, and what lies far off does not pull.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rehearse {

/// Of an even number, the larger of the two in the middle. At least one.
double median(std::vector<double> values);

struct Sample {
  std::string name;
  double x = 0, y = 0;  // y > 0
  double weight = 1;    // how much it counts
};

struct LineFit {
  double intercept = 0, slope = 0;           // neither below zero
  double median_error = 0, worst_error = 0;  // |fitted - y| / y
  std::size_t outliers = 0;                  // more than three times the robust spread off
  double at(double x) const { return intercept + slope * x; }
};

/// Huber's loss on relative residuals, by weights that are fitted again until they stay (Huber
/// 1964; the spread is 1.4826 times the median of the residuals). At least two samples.
LineFit fit_line(const std::vector<Sample>& samples);

}  // namespace rehearse
