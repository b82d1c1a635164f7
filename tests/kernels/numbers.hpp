// What tests of kernels share: seeded numbers, comparison, and gradients by central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "kernels/math/rows.hpp"

namespace rehearse {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// SeededNumbers that are the same on every machine.
class SeededNumbers {
 public:
  explicit SeededNumbers(std::uint64_t seed) : engine_{seed} {}

  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
  Floats floats(std::size_t count, double low = -2, double high = 2) {
    Floats values(count);
    for (float& value : values) value = static_cast<float>(between(low, high));
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

/// Nothing, one, odd, on both sides of powers of two, and eight at random.
inline std::vector<RowShape> row_shapes() {
  std::vector<RowShape> shapes{{0, 0}, {0, 3},  {3, 0},  {1, 1},   {1, 7}, {5, 1},
                               {3, 5}, {2, 33}, {7, 65}, {4, 129}, {9, 2}, {17, 16}};
  SeededNumbers numbers(1);
  for (int i = 0; i < 8; ++i) shapes.push_back({numbers.below(14), numbers.below(80)});
  return shapes;
}
inline std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 7, 31, 64, 65, 1000};
  SeededNumbers numbers(2);
  for (int i = 0; i < 5; ++i) all.push_back(numbers.below(300));
  return all;
}

inline Doubles widen(std::span<const float> values) { return {values.begin(), values.end()}; }

/// Within `tolerance` of each number, relative to it or, if it is small, to 1.
inline void expect_close(std::span<const float> got, std::span<const double> wanted,
                         double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), wanted[i],
                tolerance * std::max(1.0, std::abs(wanted[i])))
        << "element " << i << " of " << got.size();
}

inline std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(std::bit_cast<std::uint32_t>(value));
  return result;
}

/// The gradient of a function by central differences in fp64.
inline Doubles numeric_gradient(const std::function<double(const Doubles&)>& function, Doubles at) {
  constexpr double step = 1e-5;
  Doubles gradient;
  for (double& x : at) {
    const double here = x;
    x = here + step;
    const double above = function(at);
    x = here - step;
    gradient.push_back((above - function(at)) / (2 * step));
    x = here;
  }
  return gradient;
}

/// Σ a · b: a loss whose gradient with respect to `a` is `b`.
inline double dot(const Doubles& a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * static_cast<double>(b[i]);
  return sum;
}

}  // namespace rehearse
