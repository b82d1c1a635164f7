// Cross-entropy of logits against the right token: loss = log Σ e^x - x[target], one row a token.
//
//   logit_gradient = (softmax(x) - [c == target]) · scale,   scale = 1 / counted for a mean loss
//
// Softmax and loss in one pass from the logits; the probabilities are never stored. Rows whose
// target is ignored_token have no loss and a gradient of zero.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/math/rows.hpp"
#include "kernels/math/token.hpp"

namespace rehearse {

struct LossSum {
  double sum = 0;           // over the counted rows, in fp64 in their order
  std::size_t counted = 0;  // rows with a target

  friend bool operator==(const LossSum&, const LossSum&) = default;
};

/// Also writes the loss of each row, 0 where ignored. Targets are below shape.width or ignored.
LossSum cross_entropy(std::span<const float> logits, std::span<const Token> targets, RowShape shape,
                      std::span<float> losses);

/// `logit_gradient` may take the place of `logits`.
void cross_entropy_backward(std::span<const float> logits, std::span<const Token> targets,
                            RowShape shape, float scale, std::span<float> logit_gradient);

}  // namespace rehearse
