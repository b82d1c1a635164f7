// Weighted least squares in closed form, some twenty times over.
#include "tools/measure/line_fit.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/assert.hpp"

namespace rehearse {

double median(std::vector<double> values) {
  ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

namespace {

struct Line {
  double intercept, slope;
};

Line weighted(const std::vector<Sample>& samples, const std::vector<double>& weights) {
  double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double weight = samples[i].weight * weights[i] / (samples[i].y * samples[i].y);
    w += weight;
    wx += weight * samples[i].x;
    wy += weight * samples[i].y;
    wxx += weight * samples[i].x * samples[i].x;
    wxy += weight * samples[i].x * samples[i].y;
  }
  const double determinant = w * wxx - wx * wx;
  if (determinant <= 0) return {wy / w, 0};
  const Line line{(wy * wxx - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant};
  // Neither a negative latency nor a negative cost of a byte: the best line on that border.
  if (line.intercept < 0) return {0, wxx > 0 ? wxy / wxx : 0};
  if (line.slope < 0) return {wy / w, 0};
  return line;
}

}  // namespace

LineFit fit_line(const std::vector<Sample>& samples) {
  ASSERT(samples.size() >= 2);
  std::vector<double> weights(samples.size(), 1), errors(samples.size());
  Line line{};
  double spread = 0;
  for (int round = 0; round < 20; ++round) {
    line = weighted(samples, weights);
    for (std::size_t i = 0; i < samples.size(); ++i)
      errors[i] =
          std::abs(line.intercept + line.slope * samples[i].x - samples[i].y) / samples[i].y;
    spread = std::max(1.4826 * median(errors), 1e-6);
    for (std::size_t i = 0; i < samples.size(); ++i)
      weights[i] = errors[i] <= 1.345 * spread ? 1 : 1.345 * spread / errors[i];
  }
  LineFit fit{.intercept = line.intercept, .slope = line.slope};
  fit.median_error = median(errors);
  fit.worst_error = *std::max_element(errors.begin(), errors.end());
  fit.outliers = static_cast<std::size_t>(std::count_if(
      errors.begin(), errors.end(), [&](double error) { return error > 3 * spread; }));
  return fit;
}

}  // namespace rehearse
