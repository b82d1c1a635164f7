// One step of SGD, momentum and Adam on fp32 master weights, element by element: any cut of the
// spans (ZeRO's shards) gives the same bits. kernels/math/layerwise.hpp has LARS and LAMB.
//
//   SGD       g += decay · w;  w -= rate · g
//   momentum  g += decay · w;  m = momentum · m + g;  w -= rate · m   (nesterov: g + momentum · m)
//   Adam      m = b1 · m + (1 - b1) · g;  v = b2 · v + (1 - b2) · g²         (Kingma and Ba 2015)
//             w -= rate · (m / (1 - b1^t)) / (√(v / (1 - b2^t)) + epsilon)
//   AdamW     and w -= rate · decay · w before it                  (Loshchilov and Hutter 2019)
//
// Each operation rounds to fp32, in the order written: what a GPU computes without contraction to
// fused multiply-adds. Constants of a whole step (1 - b1^t) are computed in fp64 and rounded once.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "kernels/math/number_formats.hpp"

namespace rehearse {

/// The 16-bit weights that the next forward pass reads, made anew from the master's; or none.
using WeightCopy = std::variant<std::monostate, std::span<Fp16>, std::span<Bf16>>;
void refresh(const WeightCopy& copy, std::span<const float> master);

/// What a step changes and what it reads. Gradients are multiplied by `gradient_factor` as they are
/// read: the loss scale's inverse times the clip factor.
struct Weights {
  std::span<float> master;
  WeightCopy copy;
  std::span<const float> gradient;
  float gradient_factor = 1;
};

struct Sgd {
  float rate = 0, decay = 0;
};
void sgd_step(const Sgd& sgd, const Weights& weights);

struct Momentum {
  float rate = 0, momentum = 0.9F, decay = 0;
  bool nesterov = false;
};
void momentum_step(const Momentum& settings, const Weights& weights, std::span<float> velocity);

struct Adam {
  float rate = 0, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
  float decay = 0;
  bool decoupled = true;  // AdamW; else decay · w joins the gradient
};
struct Moments {
  std::span<float> first, second;  // m and v, zero at first
};
/// `number` counts steps from 1; a skipped step does not count.
void adam_step(const Adam& adam, const Weights& weights, Moments moments, std::uint64_t number);

/// Bias corrections of Adam and LAMB: 1 - b1^t and 1 - b2^t.
struct BiasCorrection {
  float first, second;
};
BiasCorrection bias_correction(float beta1, float beta2, std::uint64_t number);

}  // namespace rehearse
