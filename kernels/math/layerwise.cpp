// The passes, and the ratios between them.
#include "kernels/math/layerwise.hpp"

#include <cmath>
#include <cstddef>

#include "kernels/math/gradient_norm.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

LayerSquares& LayerSquares::operator+=(const LayerSquares& part) {
  weights += part.weights;
  other += part.other;
  return *this;
}

LayerSquares lars_squares(const Weights& weights) {
  ASSERT(weights.gradient.size() == weights.master.size());
  double gradients = 0;
  for (const float gradient : weights.gradient) {
    const float g = gradient * weights.gradient_factor;
    gradients += static_cast<double>(g) * static_cast<double>(g);
  }
  return {sum_of_squares(weights.master), gradients};
}

float lars_ratio(const Lars& lars, const LayerSquares& squares) {
  const double w = std::sqrt(squares.weights), g = std::sqrt(squares.other);
  if (w == 0 || g == 0) return 1;
  const double decay = static_cast<double>(lars.decay);
  return static_cast<float>(static_cast<double>(lars.trust) * w / (g + decay * w));
}

void lars_step(const Lars& lars, const Weights& weights, std::span<float> velocity, float ratio) {
  ASSERT(weights.gradient.size() == weights.master.size());
  ASSERT(velocity.size() == weights.master.size());
  const float local_rate = lars.rate * ratio;
  for (std::size_t i = 0; i < weights.master.size(); ++i) {
    float &w = weights.master[i], &m = velocity[i];
    const float g = weights.gradient[i] * weights.gradient_factor + lars.decay * w;
    m = lars.momentum * m + local_rate * g;
    w -= m;
  }
  refresh(weights.copy, weights.master);
}

LayerSquares lamb_update(const Lamb& lamb, const Weights& weights, Moments moments,
                         std::uint64_t number, std::span<float> update) {
  ASSERT(weights.gradient.size() == weights.master.size());
  ASSERT(moments.first.size() == weights.master.size());
  ASSERT(moments.second.size() == weights.master.size());
  ASSERT(update.size() == weights.master.size());
  const BiasCorrection correction = bias_correction(lamb.beta1, lamb.beta2, number);
  for (std::size_t i = 0; i < update.size(); ++i) {
    float &m = moments.first[i], &v = moments.second[i];
    const float g = weights.gradient[i] * weights.gradient_factor;
    m = lamb.beta1 * m + (1 - lamb.beta1) * g;
    v = lamb.beta2 * v + (1 - lamb.beta2) * (g * g);
    const float adam = (m / correction.first) / (std::sqrt(v / correction.second) + lamb.epsilon);
    update[i] = adam + lamb.decay * weights.master[i];
  }
  return {sum_of_squares(weights.master), sum_of_squares(update)};
}

float lamb_ratio(const LayerSquares& squares) {
  if (squares.weights == 0 || squares.other == 0) return 1;
  return static_cast<float>(std::sqrt(squares.weights) / std::sqrt(squares.other));
}

void lamb_apply(const Lamb& lamb, const Weights& weights, std::span<const float> update,
                float ratio) {
  ASSERT(update.size() == weights.master.size());
  const float local_rate = lamb.rate * ratio;
  for (std::size_t i = 0; i < update.size(); ++i) weights.master[i] -= local_rate * update[i];
  refresh(weights.copy, weights.master);
}

}  // namespace rehearse
