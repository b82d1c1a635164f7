// One block of Philox serves four elements.
#include "kernels/math/dropout.hpp"

#include <cmath>
#include <cstddef>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

// Dropped are words below it; 2^32 drops them all.
std::uint64_t threshold(double probability) {
  ASSERT(probability >= 0 && probability <= 1);
  return static_cast<std::uint64_t>(std::ldexp(probability, 32));
}

// Calls write(i, factor) for each element: 0 or 1 / (1 - p).
template <class Write>
void for_each_factor(std::size_t count, const Dropout& mask, Write write) {
  const std::uint64_t limit = threshold(mask.probability);
  const float kept = mask.probability < 1 ? static_cast<float>(1 / (1 - mask.probability)) : 0.0F;
  for (std::size_t i = 0; i < count;) {
    const std::uint64_t element = mask.first + i;
    const PhiloxCounter words = mask.words.block(element / 4);
    for (std::uint64_t lane = element % 4; lane < 4 && i < count; ++lane, ++i)
      write(i, words[lane] < limit ? 0.0F : kept);
  }
}

// Not a product: what falls is 0 even where x is infinite or NaN.
float masked(float x, float factor) { return factor == 0 ? 0.0F : x * factor; }

}  // namespace

bool Dropout::drops(std::uint64_t element) const {
  return words.word(element) < threshold(probability);
}

void dropout(std::span<const float> x, const Dropout& mask, std::span<float> y) {
  ASSERT(x.size() == y.size());
  for_each_factor(y.size(), mask,
                  [&](std::size_t i, float factor) { y[i] = masked(x[i], factor); });
}

void dropout_add(std::span<const float> x, std::span<const float> residual, const Dropout& mask,
                 std::span<float> y) {
  ASSERT(x.size() == y.size() && residual.size() == y.size());
  for_each_factor(y.size(), mask,
                  [&](std::size_t i, float factor) { y[i] = masked(x[i], factor) + residual[i]; });
}

}  // namespace rehearse
