// A pass over a layer's pieces: 3 x 3 convolutions in fp32 by Winograd's algorithm, which takes
// fewer products (Lavin and Gray 2016). For a 2 x 2 tile of the output:
//
//   by taps   4 outputs x 9 taps = 36 products         by Winograd   4 x 4 = 16, and sums before
//                                                      and after them
//
// cuDNN takes it where the stride is 1 and no tensor core does the products.
#pragma once

#include "strategies/layers/layer_pieces.hpp"
#include "topology/accelerator.hpp"

namespace rehearse {

/// The device's `winograd_share` is what is left of such a convolution's time.
LayerPieces winograd_layer(LayerPieces layer, const Accelerator& device);

}  // namespace rehearse
