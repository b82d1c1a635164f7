// Both norms: RMS norm is layer norm with a mean of zero and without a bias.
#include "kernels/math/norm.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

double mean_of(std::span<const float> row) {
  double sum = 0;
  for (const float value : row) sum += static_cast<double>(value);
  return sum / static_cast<double>(row.size());
}

double rate_of(std::span<const float> row, double mean, float epsilon) {
  double squares = 0;
  for (const float value : row) {
    const double difference = static_cast<double>(value) - mean;
    squares += difference * difference;
  }
  const double variance = squares / static_cast<double>(row.size());
  return 1 / std::sqrt(variance + static_cast<double>(epsilon));
}

// One row, and its share of the weight's gradient.
void norm_row_backward(std::span<const float> y_gradient, std::span<const float> x,
                       std::span<const float> weight, double mean, double rate, bool centred,
                       std::span<float> x_gradient, std::span<double> weight_gradient) {
  double sum = 0, product = 0;
  for (std::size_t c = 0; c < x.size(); ++c) {
    const double n = (static_cast<double>(x[c]) - mean) * rate;
    const double d = static_cast<double>(y_gradient[c]) * static_cast<double>(weight[c]);
    sum += d;
    product += d * n;
    weight_gradient[c] += static_cast<double>(y_gradient[c]) * n;
  }
  const double width = static_cast<double>(x.size());
  const double mean_d = centred ? sum / width : 0, mean_dn = product / width;
  for (std::size_t c = 0; c < x.size(); ++c) {
    const double n = (static_cast<double>(x[c]) - mean) * rate;
    const double d = static_cast<double>(y_gradient[c]) * static_cast<double>(weight[c]);
    x_gradient[c] = static_cast<float>(rate * (d - mean_d - n * mean_dn));
  }
}

void add_rounded(std::span<const double> sums, std::span<float> target) {
  for (std::size_t c = 0; c < target.size(); ++c)
    target[c] = static_cast<float>(static_cast<double>(target[c]) + sums[c]);
}

}  // namespace

void layer_norm(std::span<const float> x, std::span<const float> weight,
                std::span<const float> bias, RowShape shape, float epsilon, std::span<float> y,
                NormStatistics statistics) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  ASSERT(weight.size() == shape.width && bias.size() == shape.width);
  ASSERT(statistics.mean.size() == shape.rows && statistics.rate.size() == shape.rows);
  if (shape.width == 0) return;
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const auto row = x.subspan(r * shape.width, shape.width);
    const auto output = y.subspan(r * shape.width, shape.width);
    const double mean = mean_of(row), rate = rate_of(row, mean, epsilon);
    for (std::size_t c = 0; c < shape.width; ++c) {
      const double n = (static_cast<double>(row[c]) - mean) * rate;
      output[c] =
          static_cast<float>(n * static_cast<double>(weight[c]) + static_cast<double>(bias[c]));
    }
    statistics.mean[r] = static_cast<float>(mean);
    statistics.rate[r] = static_cast<float>(rate);
  }
}

void layer_norm_backward(std::span<const float> y_gradient, std::span<const float> x,
                         std::span<const float> weight, RowShape shape, NormStatistics statistics,
                         std::span<float> x_gradient, std::span<float> weight_gradient,
                         std::span<float> bias_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(x_gradient.size() == shape.size() && weight.size() == shape.width);
  ASSERT(weight_gradient.size() == shape.width && bias_gradient.size() == shape.width);
  ASSERT(statistics.mean.size() == shape.rows && statistics.rate.size() == shape.rows);
  add_column_sums(y_gradient, shape, bias_gradient);  // first: x_gradient may be y_gradient
  std::vector<double> sums(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const std::size_t first = r * shape.width;
    norm_row_backward(y_gradient.subspan(first, shape.width), x.subspan(first, shape.width), weight,
                      static_cast<double>(statistics.mean[r]),
                      static_cast<double>(statistics.rate[r]), true,
                      x_gradient.subspan(first, shape.width), sums);
  }
  add_rounded(sums, weight_gradient);
}

void rms_norm(std::span<const float> x, std::span<const float> weight, RowShape shape,
              float epsilon, std::span<float> y, std::span<float> rate) {
  ASSERT(x.size() == shape.size() && y.size() == shape.size());
  ASSERT(weight.size() == shape.width && rate.size() == shape.rows);
  if (shape.width == 0) return;
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const auto row = x.subspan(r * shape.width, shape.width);
    const auto output = y.subspan(r * shape.width, shape.width);
    const double row_rate = rate_of(row, 0, epsilon);
    for (std::size_t c = 0; c < shape.width; ++c)
      output[c] = static_cast<float>(static_cast<double>(row[c]) * row_rate *
                                     static_cast<double>(weight[c]));
    rate[r] = static_cast<float>(row_rate);
  }
}

void rms_norm_backward(std::span<const float> y_gradient, std::span<const float> x,
                       std::span<const float> weight, RowShape shape, std::span<const float> rate,
                       std::span<float> x_gradient, std::span<float> weight_gradient) {
  ASSERT(x.size() == shape.size() && y_gradient.size() == shape.size());
  ASSERT(x_gradient.size() == shape.size() && weight.size() == shape.width);
  ASSERT(weight_gradient.size() == shape.width && rate.size() == shape.rows);
  std::vector<double> sums(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const std::size_t first = r * shape.width;
    norm_row_backward(y_gradient.subspan(first, shape.width), x.subspan(first, shape.width), weight,
                      0, static_cast<double>(rate[r]), false,
                      x_gradient.subspan(first, shape.width), sums);
  }
  add_rounded(sums, weight_gradient);
}

}  // namespace rehearse
