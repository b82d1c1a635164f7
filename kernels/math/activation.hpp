// The curves between two GEMMs: GELU with its bias, ReLU, SiLU, SwiGLU; forward and backward.
//
//   gelu(x) = x Φ(x),  Φ(x) = (1 + erf(x/√2)) / 2                       (Hendrycks and Gimpel 2016)
//           ≈ x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2                (the same paper; GPT-2)
//   silu(x) = x / (1 + e^-x)            swiglu(gate, up) = silu(gate) · up        (Shazeer 2020)
//
// Backward kernels compute the curve's slope again from the input of the forward pass. Computed in
// fp64 and rounded once. Gradients of inputs are written, gradients of parameters added to.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/math/rows.hpp"

namespace rehearse {

enum class GeluForm : std::uint8_t { tanh, erf };

/// y = gelu(x + bias), the bias one number a column. x and y may be the same.
void bias_gelu(std::span<const float> x, std::span<const float> bias, RowShape shape, GeluForm form,
               std::span<float> y);
/// x_gradient = y_gradient · gelu'(x + bias); bias_gradient += its column sums.
void bias_gelu_backward(std::span<const float> y_gradient, std::span<const float> x,
                        std::span<const float> bias, RowShape shape, GeluForm form,
                        std::span<float> x_gradient, std::span<float> bias_gradient);

/// y = x + bias, and its backward: the gradient of x is y's, that of the bias its column sums.
void add_bias(std::span<const float> x, std::span<const float> bias, RowShape shape,
              std::span<float> y);

/// y = max(x, 0), and x_gradient = y_gradient where y > 0, else 0; x and y may be the same.
void relu(std::span<const float> x, std::span<float> y);
void relu_backward(std::span<const float> y_gradient, std::span<const float> y,
                   std::span<float> x_gradient);

void silu(std::span<const float> x, std::span<float> y);
void silu_backward(std::span<const float> y_gradient, std::span<const float> x,
                   std::span<float> x_gradient);

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y);
void swiglu_backward(std::span<const float> y_gradient, std::span<const float> gate,
                     std::span<const float> up, std::span<float> gate_gradient,
                     std::span<float> up_gradient);

}  // namespace rehearse
