// One walk: each piece joins the one before it, or stands.
#include "strategies/layers/fusion.hpp"

namespace rehearse {

namespace {

// What one of them hands to the other stays in registers; what others read later is still written.
bool joins(const Piece& before, const Piece& next) {
  return before.elementwise != Elementwise::no && next.elementwise == Elementwise::whole &&
         before.of_weights == next.of_weights && before.recomputed == next.recomputed;
}

void join(Piece& before, const Piece& next) {
  Compute& work = std::get<Compute>(before.work);
  const Compute& more = std::get<Compute>(next.work);
  const Bytes saved = before.result_is_kept ? before.result : 2 * before.result;
  ASSERT(saved <= work.traffic + more.traffic);
  before.name += "+" + next.name;
  work.flops += more.flops;
  work.traffic += more.traffic - saved;
  before.result = next.result;
  before.result_is_kept = next.result_is_kept;
}

bool was_beside(const std::vector<Piece>& pieces, std::size_t exchange) {
  if (pieces.empty() || pieces[exchange].beside == 0) return false;
  return pieces.size() - 1 > exchange && pieces.size() - 1 <= exchange + pieces[exchange].beside;
}

}  // namespace

std::vector<Piece> fused(const std::vector<Piece>& pieces) {
  std::vector<Piece> result;
  std::size_t exchange = 0, beside = 0;  // the last exchange, and how many more do not wait for it
  for (const Piece& piece : pieces) {
    const bool is_beside = beside > 0;
    if (is_beside) --beside;
    // Who waits for an exchange and who does not stay apart.
    const bool parts = is_beside != was_beside(result, exchange);
    if (!result.empty() && !parts && joins(result.back(), piece)) {
      join(result.back(), piece);
      if (is_beside) --result[exchange].beside;
      continue;
    }
    result.push_back(piece);
    if (piece.beside > 0) exchange = result.size() - 1, beside = piece.beside;
  }
  return result;
}

LayerPieces fused_layer(LayerPieces layer) {
  layer.forward = fused(layer.forward);
  layer.backward = fused(layer.backward);
  return layer;
}

}  // namespace rehearse
