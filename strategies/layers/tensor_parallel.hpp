// Tensor parallelism: cuts the operators of a layer over ranks, and says what one rank then does.
//
//            ┌─ norm ─[g]─ qkv │ attention │ out ─[r]─ residual ─ norm ─[g]─ up │ gelu │ down ─[r]─
//   rank 0   │ whole      columns  heads     rows    whole             columns        rows
//   rank 1   │ whole      columns  heads     rows    whole             columns        rows
//
//   [g] nothing forward, all-reduce backward; [r] all-reduce forward, nothing backward.
//   Sequence parallel: "whole" holds tokens / t, [g] is all-gather / reduce-scatter and [r] is
//   reduce-scatter / all-gather (Shoeybi et al. 2019; Korthikanti et al. 2022, figure 5).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/workload.hpp"
#include "strategies/layers/layer_pieces.hpp"
#include "strategies/layers/sharding.hpp"

namespace rehearse {

/// What one rank does for one micro-batch of a layer. The sharding must pass check_sharding.
LayerPieces pieces_of(const Workload&, std::size_t layer, const Sharding&);

/// The pieces of all layers of a workload, those of alike layers once.
class PieceTable {
 public:
  PieceTable() = default;
  /// Throws InputError as check_sharding does.
  PieceTable(const Workload& workload, const Sharding& how);
  const LayerPieces& operator[](std::size_t layer) const { return kinds_[kind_of_[layer]]; }
  std::size_t size() const { return kind_of_.size(); }
  /// Of layers with the same number the pieces are the same.
  std::uint32_t kind(std::size_t layer) const { return kind_of_[layer]; }
  const std::vector<LayerPieces>& kinds() const { return kinds_; }
  /// Parameters tied to those of another layer are held twice from now on: their owners stand on
  /// different pipeline ranks. Gives how many.
  std::int64_t copy_tied_parameters();
  /// Replaces every layer by what the pass makes of it (autocast.hpp, fusion.hpp).
  template <class Pass>
  void apply(Pass&& pass) {
    for (LayerPieces& kind : kinds_) kind = pass(std::move(kind));
  }
  friend bool operator==(const PieceTable&, const PieceTable&) = default;

 private:
  std::vector<LayerPieces> kinds_;
  std::vector<std::uint32_t> kind_of_;  // by layer
};

}  // namespace rehearse
