// Dropout (Srivastava et al. 2014), inverted: what is kept grows by 1 / (1 - p), so that inference
// needs nothing. The mask is computed from a counter, never stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/math/philox.hpp"

namespace rehearse {

/// Which elements fall. Element i of a span has the number first + i: a part of a tensor that knows
/// where it begins falls as it does in the whole.
struct Dropout {
  double probability = 0;  // of falling, 0 to 1
  RandomWords words;
  std::uint64_t first = 0;

  /// The element's word is below probability · 2^32.
  bool drops(std::uint64_t element) const;
};

/// In a training, each step's streams begin so many behind those of the step before.
inline constexpr std::uint64_t dropout_streams_of_step = 1u << 20;

/// A part of a tensor as runs of `block` numbers, each beginning `stride` behind the one before.
struct DropoutRuns {
  std::size_t block = 0, stride = 0;
};

/// y = x / (1 - p) where kept, else 0. Its backward is itself, on the gradient, with the same mask.
void dropout(std::span<const float> x, const Dropout& mask, std::span<float> y);

/// y = dropout(x) + residual, the bits of dropout and add one after the other.
void dropout_add(std::span<const float> x, std::span<const float> residual, const Dropout& mask,
                 std::span<float> y);

}  // namespace rehearse
