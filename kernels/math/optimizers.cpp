// Loops over parameters; what is the same for all of them is computed before.
#include "kernels/math/optimizers.hpp"

#include <cmath>
#include <cstddef>

#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

void check(const Weights& weights) { ASSERT(weights.gradient.size() == weights.master.size()); }

}  // namespace

void refresh(const WeightCopy& copy, std::span<const float> master) {
  if (const auto* fp16 = std::get_if<std::span<Fp16>>(&copy)) cast(master, *fp16);
  if (const auto* bf16 = std::get_if<std::span<Bf16>>(&copy)) cast(master, *bf16);
}

void sgd_step(const Sgd& sgd, const Weights& weights) {
  check(weights);
  for (std::size_t i = 0; i < weights.master.size(); ++i) {
    float& w = weights.master[i];
    const float g = weights.gradient[i] * weights.gradient_factor + sgd.decay * w;
    w -= sgd.rate * g;
  }
  refresh(weights.copy, weights.master);
}

void momentum_step(const Momentum& settings, const Weights& weights, std::span<float> velocity) {
  check(weights);
  ASSERT(velocity.size() == weights.master.size());
  for (std::size_t i = 0; i < weights.master.size(); ++i) {
    float &w = weights.master[i], &m = velocity[i];
    const float g = weights.gradient[i] * weights.gradient_factor + settings.decay * w;
    m = settings.momentum * m + g;
    w -= settings.rate * (settings.nesterov ? g + settings.momentum * m : m);
  }
  refresh(weights.copy, weights.master);
}

BiasCorrection bias_correction(float beta1, float beta2, std::uint64_t number) {
  ASSERT(number >= 1);
  const auto correction = [&](float beta) {
    return static_cast<float>(1 - std::pow(static_cast<double>(beta), static_cast<double>(number)));
  };
  return {correction(beta1), correction(beta2)};
}

void adam_step(const Adam& adam, const Weights& weights, Moments moments, std::uint64_t number) {
  check(weights);
  ASSERT(moments.first.size() == weights.master.size());
  ASSERT(moments.second.size() == weights.master.size());
  const BiasCorrection correction = bias_correction(adam.beta1, adam.beta2, number);
  for (std::size_t i = 0; i < weights.master.size(); ++i) {
    float &w = weights.master[i], &m = moments.first[i], &v = moments.second[i];
    float g = weights.gradient[i] * weights.gradient_factor;
    if (adam.decoupled)
      w -= adam.rate * adam.decay * w;
    else
      g += adam.decay * w;
    m = adam.beta1 * m + (1 - adam.beta1) * g;
    v = adam.beta2 * v + (1 - adam.beta2) * (g * g);
    w -= adam.rate * (m / correction.first) / (std::sqrt(v / correction.second) + adam.epsilon);
  }
  refresh(weights.copy, weights.master);
}

}  // namespace rehearse
