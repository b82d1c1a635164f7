// A pass over a layer's pieces: the kernels as a framework has them. Pieces are written as the best
// libraries fuse them; a framework without such a kernel runs a chain of element-wise ones, which
// read and write memory in between.
#pragma once

#include "sim/scenario/framework.hpp"
#include "sim/workload/transformer.hpp"
#include "strategies/layers/layer_pieces.hpp"

namespace rehearse {

/// What decides of how many kernels a chain is.
struct UnfusedModel {
  Norm norm{};
  bool has_bias = false;  // behind products
  bool has_dropout = false;
};

LayerPieces framework_layer(LayerPieces layer, const Framework& framework,
                            const Accelerator& device, const UnfusedModel& model);

}  // namespace rehearse
