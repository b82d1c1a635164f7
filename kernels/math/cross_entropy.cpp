// The row's sum of powers is the whole of it: loss and probabilities both follow from it.
#include "kernels/math/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/math/softmax.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

std::size_t class_of(Token target, RowShape shape) {
  ASSERT(target >= Token{0} && static_cast<std::size_t>(target) < shape.width);
  return static_cast<std::size_t>(target);
}

}  // namespace

LossSum cross_entropy(std::span<const float> logits, std::span<const Token> targets, RowShape shape,
                      std::span<float> losses) {
  ASSERT(logits.size() == shape.size());
  ASSERT(targets.size() == shape.rows && losses.size() == shape.rows);
  LossSum total;
  for (std::size_t r = 0; r < shape.rows; ++r) {
    losses[r] = 0;
    if (targets[r] == ignored_token) continue;
    const auto row = logits.subspan(r * shape.width, shape.width);
    const ExpSum powers = exp_sum(row);
    const double right = static_cast<double>(row[class_of(targets[r], shape)]);
    const double loss = (powers.largest - right) + std::log(powers.sum);
    losses[r] = static_cast<float>(loss);
    total.sum += loss;
    ++total.counted;
  }
  return total;
}

void cross_entropy_backward(std::span<const float> logits, std::span<const Token> targets,
                            RowShape shape, float scale, std::span<float> logit_gradient) {
  ASSERT(logits.size() == shape.size() && logit_gradient.size() == shape.size());
  ASSERT(targets.size() == shape.rows);
  for (std::size_t r = 0; r < shape.rows; ++r) {
    const auto row = logits.subspan(r * shape.width, shape.width);
    const auto gradient = logit_gradient.subspan(r * shape.width, shape.width);
    if (targets[r] == ignored_token) {
      std::ranges::fill(gradient, 0.0F);
      continue;
    }
    const std::size_t target = class_of(targets[r], shape);
    const ExpSum powers = exp_sum(row);
    for (std::size_t c = 0; c < shape.width; ++c) {
      const double probability =
          std::exp(static_cast<double>(row[c]) - powers.largest) / powers.sum;
      gradient[c] =
          static_cast<float>((probability - (c == target ? 1 : 0)) * static_cast<double>(scale));
    }
  }
}

}  // namespace rehearse
