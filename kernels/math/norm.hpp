// Layer norm (Ba, Kiros and Hinton 2016) and RMS norm (Zhang and Sennrich 2019) of each row.
//
//   layer norm   y = (x - mean) · rate · weight + bias,   rate = 1 / √(variance + epsilon)
//   RMS norm     y = x · rate · weight,                   rate = 1 / √(mean of x² + epsilon)
//
// backward, with n = (x - mean) · rate (RMS: x · rate) and d = y_gradient · weight:
//   layer norm   x_gradient = rate · (d - mean(d) - n · mean(d · n))
//   RMS norm     x_gradient = rate · (d - n · mean(d · n))
//   weight_gradient += column sums of y_gradient · n,   bias_gradient += those of y_gradient
//
// Sums in fp64 in the order of memory. Gradients of inputs are written, of parameters added to.
#pragma once

#include <span>

#include "kernels/math/rows.hpp"

namespace rehearse {

/// What the forward pass leaves for the backward pass: one number a row each.
struct NormStatistics {
  std::span<float> mean;  // layer norm only
  std::span<float> rate;
};

void layer_norm(std::span<const float> x, std::span<const float> weight,
                std::span<const float> bias, RowShape shape, float epsilon, std::span<float> y,
                NormStatistics statistics);
void layer_norm_backward(std::span<const float> y_gradient, std::span<const float> x,
                         std::span<const float> weight, RowShape shape, NormStatistics statistics,
                         std::span<float> x_gradient, std::span<float> weight_gradient,
                         std::span<float> bias_gradient);

void rms_norm(std::span<const float> x, std::span<const float> weight, RowShape shape,
              float epsilon, std::span<float> y, std::span<float> rate);
void rms_norm_backward(std::span<const float> y_gradient, std::span<const float> x,
                       std::span<const float> weight, RowShape shape, std::span<const float> rate,
                       std::span<float> x_gradient, std::span<float> weight_gradient);

}  // namespace rehearse
