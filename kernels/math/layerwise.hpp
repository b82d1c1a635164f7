// LARS (You, Gitman and Ginsburg 2017) and LAMB (You et al., ICLR 2020): the rate of each layer
// grows with the ratio of its norms. Two passes, because the norms of a whole layer come first:
//
//   LARS  pass 1  |w|, |g|                                           (algorithm 1 of the paper)
//         pass 2  local = trust · |w| / (|g| + decay · |w|)
//                 m = momentum · m + rate · local · (g + decay · w);  w -= m
//   LAMB  pass 1  moments as Adam's;  u = m̂ / (√v̂ + epsilon) + decay · w;  |w|, |u|
//         pass 2  w -= rate · |w| / |u| · u                          (algorithm 2 of the paper)
//
// Where a norm is zero the ratio is 1 (Nvidia's apex). Sums of squares are returned, not norms: the
// shards of a layer on several ranks add theirs before pass 2. Pass 1 and 2 themselves go element
// by element, in fp32 with one rounding an operation.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/math/optimizers.hpp"

namespace rehearse {

/// Σ x² of a layer's weights, and of its gradients (LARS) or updates (LAMB), in fp64.
struct LayerSquares {
  double weights = 0, other = 0;

  LayerSquares& operator+=(const LayerSquares& part);
  friend bool operator==(const LayerSquares&, const LayerSquares&) = default;
};

struct Lars {
  float rate = 0, momentum = 0.9F, decay = 0;
  float trust = 0.001F;  // the paper's eta
};
LayerSquares lars_squares(const Weights& weights);
float lars_ratio(const Lars& lars, const LayerSquares& squares);
void lars_step(const Lars& lars, const Weights& weights, std::span<float> velocity, float ratio);

struct Lamb {
  float rate = 0, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-6F, decay = 0;
};
/// Pass 1: moments and `update` are written, weights are left as they are.
LayerSquares lamb_update(const Lamb& lamb, const Weights& weights, Moments moments,
                         std::uint64_t number, std::span<float> update);
float lamb_ratio(const LayerSquares& squares);
void lamb_apply(const Lamb& lamb, const Weights& weights, std::span<const float> update,
                float ratio);

}  // namespace rehearse
