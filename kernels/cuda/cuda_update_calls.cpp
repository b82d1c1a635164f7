// Calls of the kernels of an update on a GPU, as kernels/host/update_calls.cpp and
// kernels/host/compression_calls.cpp make them on the host.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "kernels/cuda/cuda_call_operands.hpp"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_try.hpp"

namespace rehearse {

namespace {

const StepFactors* factors_of(const DeviceOperands& x, std::size_t state, float beta1 = 0,
                              float beta2 = 0) {
  StepFactors* const factors = x.take<StepFactors>(1).data();
  step_factors(x.stream(), x.as<StepState>(state).data(), beta1, beta2, factors);
  return factors;
}

Weights weights(const DeviceOperands& x) { return {x[0], {}, x[1], 1}; }

const double* squares_of(const DeviceOperands& x, std::size_t operand) {
  double* const sum = x.take<double>(1).data();
  sum_of_squares(x.stream(), x[operand], x.take<double>(norm_scratch_numbers(x[operand].size())),
                 sum);
  return sum;
}

LayerSquares* layer_squares(const DeviceOperands& x, std::size_t operand) {
  return reinterpret_cast<LayerSquares*>(x.as<double>(operand).data());
}

void start_layer_squares(const DeviceOperands& x) {
  LayerSquares* const squares = layer_squares(x, 2);
  const NormScratch scratch = x.take<double>(norm_scratch_numbers(x[0].size()));
  sum_of_squares(x.stream(), x[0], scratch, &squares->weights);
  sum_of_squares(x.stream(), x[1], scratch, &squares->other);
}

void start_lars(const DeviceOperands& x) {
  const Lars lars{.rate = x.real(0), .momentum = x.real(1), .trust = x.real(2)};
  float* const ratio = x.take<float>(1).data();
  lars_ratio(x.stream(), lars, layer_squares(x, 3), ratio);
  lars_step(x.stream(), lars, weights(x), x[2], ratio, factors_of(x, 4));
}

void start_lamb_apply(const DeviceOperands& x) {
  float* const ratio = x.take<float>(1).data();
  lamb_ratio(x.stream(), layer_squares(x, 2), ratio);
  lamb_apply(x.stream(), {.rate = x.real(0)}, weights(x), x[1], ratio, factors_of(x, 3));
}

void start_optimizer(const DeviceOperands& x) {
  const Adam adam{.rate = x.real(0), .beta1 = x.real(1), .beta2 = x.real(2), .epsilon = x.real(3)};
  const Lamb lamb{.beta1 = x.real(0), .beta2 = x.real(1), .epsilon = x.real(2)};
  switch (x.call().kernel) {
    case Kernel::sgd:
      return sgd_step(x.stream(), {.rate = x.real(0)}, weights(x), factors_of(x, 2));
    case Kernel::momentum:
      return momentum_step(x.stream(), {.rate = x.real(0), .momentum = x.real(1)}, weights(x), x[2],
                           factors_of(x, 3));
    case Kernel::adam:
      return adam_step(x.stream(), adam, weights(x), {x[2], x[3]}, 1,
                       factors_of(x, 4, adam.beta1, adam.beta2));
    case Kernel::lars_squares:
      return lars_squares(x.stream(), weights(x), x.take<double>(norm_scratch_numbers(x[0].size())),
                          layer_squares(x, 3), factors_of(x, 2));
    case Kernel::lars:
      return start_lars(x);
    case Kernel::lamb_update:
      return lamb_update(x.stream(), lamb, weights(x), {x[2], x[3]}, 1, x[5],
                         factors_of(x, 4, lamb.beta1, lamb.beta2));
    case Kernel::layer_squares:
      return start_layer_squares(x);
    case Kernel::lamb_apply:
      return start_lamb_apply(x);
    default:
      ASSERT(false);
  }
}

// As on the host: a packet is indices, then values.
void start_select(const DeviceOperands& x) {
  const std::span<float> velocity = x[0], accumulated = x[1];
  const std::span<const std::uint32_t> sorted = x.as<std::uint32_t>(2);
  const std::size_t sent = x.as<std::uint32_t>(3).size() / 2;
  const double share = static_cast<double>(sent) / static_cast<double>(accumulated.size());
  const auto wanted =
      static_cast<std::size_t>(std::clamp(std::ceil(share * static_cast<double>(sorted.size())),
                                          1.0, static_cast<double>(sorted.size())));
  const auto* threshold = reinterpret_cast<const float*>(&sorted[sorted.size() - wanted]);
  const std::span<std::uint32_t> indices = x.as<std::uint32_t>(3).first(sent);
  std::uint32_t* const found = x.take<std::uint32_t>(1).data();
  CUDA_TRY(cudaMemsetAsync(x.as<std::byte>(3).data(), 0, x.as<std::byte>(3).size(), x.stream()));
  select_above(x.stream(), accumulated, threshold,
               x.take<std::uint32_t>(top_k_scratch_words(accumulated.size())), indices, found);
  fill_packet(x.stream(), {velocity, accumulated}, indices, found, x.flag(0),
              x.as<float>(3).last(sent));
}

void start_compression(const DeviceOperands& x) {
  switch (x.call().kernel) {
    case Kernel::dgc_clip:
      return clip_to(x.stream(), squares_of(x, 0),
                     x.number(0) / std::sqrt(static_cast<double>(x.whole(0))), x[0]);
    case Kernel::dgc_accumulate:
      return correct_momentum(x.stream(), x[0], x.real(0), {x[1], x[2]});
    case Kernel::dgc_sample:
      return sample_keys(x.stream(), x[0], x.as<StepState>(1).data(), {x.whole(0), x.whole(1)},
                         x.as<std::uint32_t>(2));
    case Kernel::dgc_sort:
      return sort_by_byte(x.stream(), x.as<std::uint32_t>(0), x.whole(0),
                          x.take<std::uint32_t>(sort_scratch_words(x[0].size())),
                          x.as<std::uint32_t>(1));
    case Kernel::dgc_select:
      return start_select(x);
    case Kernel::dgc_add: {
      const std::size_t words = x.as<std::uint32_t>(0).size() / x.whole(0), sent = words / 2;
      for (std::size_t rank = 0; rank < x.whole(0); ++rank)
        add_packet(x.stream(), x.as<std::uint32_t>(0).subspan(rank * words, sent),
                   x.as<float>(0).subspan(rank * words + sent, sent), x[1]);
      return;
    }
    default:
      ASSERT(false);
  }
}

}  // namespace

void start_update_call(const DeviceOperands& x) {
  switch (x.call().kernel) {
    case Kernel::add_squares:
      return add_weighted(x.stream(), squares_of(x, 0), x.number(0), x.as<double>(1).data());
    case Kernel::round_sum:
      return round_sum(x.stream(), x.as<double>(0).data(), x[1].data());
    case Kernel::gradient_factor:
      return gradient_factor(x.stream(), x[0].data(), x.number(0), x.as<StepState>(1).data());
    case Kernel::count_step:
      return count_step(x.stream(), x.as<StepState>(0).data());
    default:
      return x.call().kernel < Kernel::dgc_clip ? start_optimizer(x) : start_compression(x);
  }
}

}  // namespace rehearse
