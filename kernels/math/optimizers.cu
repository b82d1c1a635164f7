// SGD, momentum and Adam on a GPU: one pass, each operation rounded as on the host (no
// contraction), the 16-bit copy of the weights written in the same pass.
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_optimizer.cuh"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

struct SgdStep {
  Sgd sgd;
  __device__ float operator()(std::size_t, float w, float g) const {
    g += sgd.decay * w;
    return w - sgd.rate * g;
  }
};

struct MomentumStep {
  Momentum settings;
  float* velocity;
  __device__ float operator()(std::size_t i, float w, float g) const {
    g += settings.decay * w;
    const float m = settings.momentum * velocity[i] + g;
    velocity[i] = m;
    return w - settings.rate * (settings.nesterov ? g + settings.momentum * m : m);
  }
};

struct AdamStep {
  Adam adam;
  BiasCorrection correction;
  float *first, *second;
  __device__ float operator()(std::size_t i, float w, float g) const {
    if (adam.decoupled)
      w -= adam.rate * adam.decay * w;
    else
      g += adam.decay * w;
    const float m = adam.beta1 * first[i] + (1 - adam.beta1) * g;
    const float v = adam.beta2 * second[i] + (1 - adam.beta2) * (g * g);
    first[i] = m;
    second[i] = v;
    return w - adam.rate * (m / correction.first) / (sqrtf(v / correction.second) + adam.epsilon);
  }
};

__device__ void correct(AdamStep& step, const StepFactors& factors) {
  step.correction = {factors.first, factors.second};
}

}  // namespace

void sgd_step(DeviceStream stream, const Sgd& sgd, const Weights& weights,
              const StepFactors* factors) {
  update_weights(stream, weights, SgdStep{sgd}, factors);
}

void momentum_step(DeviceStream stream, const Momentum& settings, const Weights& weights,
                   std::span<float> velocity, const StepFactors* factors) {
  ASSERT(velocity.size() == weights.master.size());
  update_weights(stream, weights, MomentumStep{settings, velocity.data()}, factors);
}

void adam_step(DeviceStream stream, const Adam& adam, const Weights& weights, Moments moments,
               std::uint64_t number, const StepFactors* factors) {
  ASSERT(moments.first.size() == weights.master.size());
  ASSERT(moments.second.size() == weights.master.size());
  update_weights(stream, weights,
                 AdamStep{adam, bias_correction(adam.beta1, adam.beta2, number),
                          moments.first.data(), moments.second.data()},
                 factors);
}

}  // namespace rehearse
