// Sums and multiples, element by element. Every one gives the same bits however its spans are cut,
// and takes its output in place of an input.
//
// The backward pass of a sum hands its gradient on as it is, so there is no kernel for it: where an
// input was used twice (a residual), add_into adds the two gradients.
#pragma once

#include <span>

namespace rehearse {

/// y = a + b. Also the residual connection.
void add(std::span<const float> a, std::span<const float> b, std::span<float> y);

/// y = (a + b) + c in one pass: the bits of two calls of add, with 16 bytes an element moved
/// instead of 24.
void add3(std::span<const float> a, std::span<const float> b, std::span<const float> c,
          std::span<float> y);

/// sum += x: what a reducing transfer does with what it receives.
void add_into(std::span<const float> x, std::span<float> sum);

/// y = factor * x; its backward is itself.
void scale(std::span<const float> x, float factor, std::span<float> y);

/// y += factor * x, two roundings.
void add_scaled(std::span<const float> x, float factor, std::span<float> y);

}  // namespace rehearse
