// By name, as a framework's kernels are; a convolution with a stride has it in its name.
#include "strategies/layers/winograd.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rehearse {

namespace {

bool takes_winograd(const Piece& piece) {
  constexpr std::string_view word = "conv3x3";
  const std::string_view name = piece.name;
  if (!name.starts_with(word) || (name.size() > word.size() && name[word.size()] == '/'))
    return false;
  const auto* work = std::get_if<Compute>(&piece.work);
  return work != nullptr && work->gemm.m > 0 && work->math == Precision::fp32;
}

// As deep a product as takes that time: the tiles of the output stay.
void shorten(std::vector<Piece>& pieces, double share) {
  for (Piece& piece : pieces) {
    if (!takes_winograd(piece)) continue;
    Compute& work = std::get<Compute>(piece.work);
    work.flops = share * work.flops;
    work.gemm.k = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(work.gemm.k)));
  }
}

}  // namespace

LayerPieces winograd_layer(LayerPieces layer, const Accelerator& device) {
  shorten(layer.forward, device.winograd_share);
  shorten(layer.backward, device.winograd_share);
  return layer;
}

}  // namespace rehearse
