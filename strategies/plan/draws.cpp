// The distributions, each from as many uniform numbers as it needs.
#include "strategies/plan/draws.hpp"

#include <cmath>
#include <numbers>

#include "sim/base/assert.hpp"
#include "sim/base/bits.hpp"

namespace rehearse {

namespace {

// Marsaglia and Tsang 2000, of mean `shape`; below 1 by the gamma of one more.
double gamma_draw(double shape, const DrawAt& at) {
  if (shape < 1)
    return gamma_draw(shape + 1, at) * std::pow(uniform_draw(at, UINT32_MAX), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t again = 0;; again += 3) {
    const double normal = normal_draw(at, again), root = 1 + c * normal;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(uniform_draw(at, again + 2)) < normal * normal / 2 + d - d * v + d * std::log(v))
      return d * v;
  }
}

}  // namespace

double uniform_draw(const DrawAt& at, std::uint64_t again) {
  std::uint64_t bits = splitmix(at.seed);
  for (const std::uint64_t part : {static_cast<std::uint64_t>(at.what), at.who, at.number, again})
    bits = splitmix(bits ^ splitmix(part));
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

double normal_draw(const DrawAt& at, std::uint64_t again) {
  return std::sqrt(-2 * std::log(uniform_draw(at, again))) *
         std::cos(2 * std::numbers::pi * uniform_draw(at, again + 1));
}

double exponential_draw(const DrawAt& at) { return -std::log(uniform_draw(at)); }

double jitter_draw(Jitter distribution, double variation, const DrawAt& at) {
  ASSERT(variation > 0);
  const double square = variation * variation;
  if (distribution == Jitter::gamma) return square * gamma_draw(1 / square, at);
  const double spread = std::sqrt(std::log1p(square));
  return std::exp(spread * normal_draw(at) - spread * spread / 2);
}

}  // namespace rehearse
