// What a rank keeps between steps when it sends few of its gradients (Lin et al., ICLR 2018): what
// is not sent is not lost, and momentum is applied before the cut instead of after the sum.
//
//   clip    g  = g · min(1, limit / (√ranks · |g|))       local clipping, section 3.2
//   correct u  = momentum · u + g;  v = v + u             momentum correction, section 3.2
//   send    the largest of v, by index
//   mask    u = v = 0 there                               momentum factor masking, section 3.3
//
// The momentum is already in what is sent: the update after the sum is plain SGD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rehearse {

/// Of one rank, zero at first, as long as its gradients.
struct CompressionState {
  std::span<float> velocity;     // u
  std::span<float> accumulated;  // v
};

/// Each of `ranks` gradients is clipped as if the norm of their sum were √ranks times its own.
/// Returns the factor that was applied, 1 for none. `limit` bounds the norm of the sum.
float clip_locally(std::span<float> gradient, double limit, std::size_t ranks);

/// The correction; element by element, so that any cut of the spans gives the same bits.
void correct_momentum(std::span<const float> gradient, float momentum, CompressionState state);

/// Takes the values at `indices` out of the state and into `values`, with the mask.
void take_out(CompressionState state, std::span<const std::uint32_t> indices,
              std::span<float> values);

}  // namespace rehearse
