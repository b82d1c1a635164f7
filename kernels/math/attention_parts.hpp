// Attention with its scores in memory: the products and the softmax that one
// fused kernel (kernels/math/attention.hpp) does at once, as kernels of their own. A
// matrix of pairs is [batch][head][query][key].
//
//   pairs        M = x yᵀ         scores q kᵀ; backward dP = dy vᵀ
//   over keys    x = M y          context P v; backward dq = dS k
//   over queries y = Mᵀ x         backward dv = Pᵀ dy, dk = dSᵀ q; heads that
//   share keys are added softmax      P = softmax(scale · M over the keys a
//   query sees), 0 for the others backward     dS = scale · P · (dP - Σ P dP)
//
// x is like queries, y like keys (kernels/math/attention.hpp). Sums in fp64, rounded
// once.
#pragma once

#include <span>

#include "kernels/math/attention.hpp"

namespace rehearse {

void attention_pairs(const AttentionShape& shape, std::span<const float> x,
                     std::span<const float> y, std::span<float> pairs);
void attention_over_keys(const AttentionShape& shape, std::span<const float> pairs,
                         std::span<const float> y, std::span<float> x);
void attention_over_queries(const AttentionShape& shape, std::span<const float> pairs,
                            std::span<const float> x, std::span<float> y);
void attention_softmax(const AttentionShape& shape, std::span<const float> scores,
                       std::span<float> probabilities);
void attention_softmax_backward(const AttentionShape& shape, std::span<const float> probabilities,
                                std::span<const float> gradient, std::span<float> scores_gradient);

}  // namespace rehearse
