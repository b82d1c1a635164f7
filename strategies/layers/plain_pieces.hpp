// The pieces of layers that are no transformer's: modules of images, layers of an MLP.
#pragma once

#include "strategies/layers/piece_writer.hpp"

namespace rehearse {

LayerPieces image_pieces(const ImageModule& module, const Sharding& how);
LayerPieces dense_pieces(const Dense& dense, const Sharding& how);

}  // namespace rehearse
