// Plain loops; the compiler turns them into vector instructions.
#include "kernels/math/elementwise.hpp"

#include <cstddef>

#include "sim/base/assert.hpp"

namespace rehearse {

void add(std::span<const float> a, std::span<const float> b, std::span<float> y) {
  ASSERT(a.size() == y.size() && b.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
}

void add3(std::span<const float> a, std::span<const float> b, std::span<const float> c,
          std::span<float> y) {
  ASSERT(a.size() == y.size() && b.size() == y.size() && c.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = (a[i] + b[i]) + c[i];
}

void add_into(std::span<const float> x, std::span<float> sum) {
  ASSERT(x.size() == sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
}

void scale(std::span<const float> x, float factor, std::span<float> y) {
  ASSERT(x.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = factor * x[i];
}

void add_scaled(std::span<const float> x, float factor, std::span<float> y) {
  ASSERT(x.size() == y.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

}  // namespace rehearse
