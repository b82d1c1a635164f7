// Operator fusion: element-wise kernels that follow one another become one, which saves launches
// and the way of what is between them through memory.
//
//   two kernels  a, b ─▶ [add] ─▶ t      t, c ─▶ [add] ─▶ d        2 launches, 6 tensors moved
//   one          a, b, c ─▶ [add+add] ─▶ d                        1 launch,   4 tensors
//
// A pass over the pieces of a layer, not over the Program: there a kernel is its FLOPs and bytes,
// and nobody knows any more which of the bytes are read again by the next one.
#pragma once

#include <vector>

#include "strategies/layers/layer_pieces.hpp"

namespace rehearse {

/// A kernel whose work ends element by element takes in all purely element-wise ones after it.
std::vector<Piece> fused(const std::vector<Piece>& pieces);
/// The same for both passes of a layer.
LayerPieces fused_layer(LayerPieces layer);

}  // namespace rehearse
