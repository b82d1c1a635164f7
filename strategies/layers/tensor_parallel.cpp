// Which layer is cut by which rule.
#include "strategies/layers/tensor_parallel.hpp"

#include <utility>

#include "sim/base/assert.hpp"
#include "strategies/layers/plain_pieces.hpp"
#include "strategies/layers/transformer_pieces.hpp"

namespace rehearse {

namespace {

LayerPieces written(const Workload& workload, const Layer& layer, const Sharding& how) {
  switch (layer.kind) {
    case LayerKind::embedding:
      return embedding_pieces({workload, how});
    case LayerKind::block:
      return block_pieces({workload, how});
    case LayerKind::final_norm:
      return final_norm_pieces({workload, how});
    case LayerKind::head:
      return head_pieces({workload, how});
    case LayerKind::dense:
      return dense_pieces(std::get<Dense>(layer.shape), how);
    case LayerKind::images:
      return image_pieces(std::get<ImageModule>(layer.shape), how);
  }
  ASSERT(false);
  return {};
}

}  // namespace

LayerPieces pieces_of(const Workload& workload, std::size_t layer, const Sharding& how) {
  ASSERT(layer < workload.layers.size());
  LayerPieces pieces = written(workload, workload.layers[layer], how);
  pieces.tensors = tensors_of(workload, workload.layers[layer]);
  return pieces;
}

std::int64_t PieceTable::copy_tied_parameters() {
  std::int64_t count = 0;
  for (LayerPieces& pieces : kinds_) {
    pieces.parameters += pieces.tied_parameters;
    count += std::exchange(pieces.tied_parameters, 0);
  }
  return count;
}

PieceTable::PieceTable(const Workload& workload, const Sharding& how) {
  check_sharding(workload, how);
  kind_of_.resize(workload.layers.size());
  for (std::size_t i = 0; i < kind_of_.size(); ++i) {
    const std::uint32_t like = workload.layers[i].like;
    if (like == i) {
      kind_of_[i] = static_cast<std::uint32_t>(kinds_.size());
      kinds_.push_back(pieces_of(workload, i, how));
    } else {
      kind_of_[i] = kind_of_[like];
    }
  }
}

}  // namespace rehearse
