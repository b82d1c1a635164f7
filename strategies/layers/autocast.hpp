// Mixed precision by lists of operators (PyTorch's autocast, Apex O1, Paddle's AMP): weights stay
// in fp32, and every operator gets its inputs in the format that its list says.
//
//   white   products            inputs cast to 16 bits, a weight once a micro-batch
//   black   norms, softmax      inputs cast to fp32, results in fp32; the loss is so anyway
//   grey    everything else     in what comes in
//
//   w (fp32) ─[cast]─▶ w (16)  ┐
//   x (16)  ───────────────────┴▶ [product] ─▶ y (16) ─[cast]─▶ [norm in fp32] ─[cast]─▶ …
//
// A weight's gradient comes out in 16 bits, and is cast and added to the one in fp32. Without
// autocast weights are 16-bit copies of fp32 masters, which the optimizer casts (Micikevicius et
// al. 2018; Apex O2, Megatron), norms read and write 16 bits, and there is nothing to cast.
#pragma once

#include "strategies/layers/layer_pieces.hpp"

namespace rehearse {

enum class OpList : std::uint8_t { white, grey, black };
OpList list_of(const Piece& piece);

/// A layer in 16 bits with the casts that its lists need.
LayerPieces autocast_layer(const LayerPieces& layer);

}  // namespace rehearse
