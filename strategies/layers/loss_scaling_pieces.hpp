// The kernels of dynamic loss scaling (strategies/methods/loss_scaling.hpp says why).
#pragma once

#include "sim/scenario/scenario.hpp"
#include "strategies/layers/layer_pieces.hpp"

namespace rehearse {

/// The kernel in front of the backward pass: one number.
const Piece& scale_piece();
/// Divides and checks the gradients of so many parameters: each is read and written.
Piece unscale_piece(const Training& training, std::int64_t parameters);

}  // namespace rehearse
