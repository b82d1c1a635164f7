// Which pieces belong to which action.
#include "strategies/layers/tape.hpp"

#include <algorithm>

namespace rehearse {

namespace {

void end_layer(Tape& tape) {
  tape.layer_end.push_back(static_cast<std::uint32_t>(tape.steps.size()));
}

Phase phase_of(BackwardPart part) {
  switch (part) {
    case BackwardPart::all:
      return Phase::backward;
    case BackwardPart::inputs:
      return Phase::backward_input;
    case BackwardPart::weights:
      return Phase::backward_weight;
  }
  return Phase::backward;
}

// What runs beside an exchange is counted among the pieces that are taken.
template <class Take>
void append(Tape& tape, const std::vector<Piece>& pieces, Phase phase, Take take) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!take(pieces[i])) continue;
    TapeStep& step = tape.steps.emplace_back(TapeStep{.piece = &pieces[i], .phase = phase});
    const std::size_t end = std::min(pieces.size(), i + 1 + pieces[i].beside);
    for (std::size_t j = i + 1; j < end; ++j) {
      if (!take(pieces[j])) continue;
      ASSERT(std::holds_alternative<Compute>(pieces[j].work));
      ++step.beside;
    }
  }
}

void recompute_layer(Tape& tape, const LayerPieces& layer, Recompute recompute) {
  const bool whole = recompute == Recompute::full && layer.recomputes;
  const bool some = recompute == Recompute::selective;
  append(tape, layer.forward, Phase::recompute,
         [&](const Piece& piece) { return whole || (some && piece.recomputed); });
}

}  // namespace

Tape forward_tape(std::span<const LayerPieces* const> layers) {
  Tape tape;
  for (const LayerPieces* layer : layers) {
    append(tape, layer->forward, Phase::forward, [](const Piece&) { return true; });
    end_layer(tape);
  }
  return tape;
}

Tape backward_tape(std::span<const LayerPieces* const> layers, BackwardPart part,
                   Recompute recompute) {
  Tape tape;
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (part != BackwardPart::weights) recompute_layer(tape, *layers[l], recompute);
    append(tape, layers[l]->backward, phase_of(part), [&](const Piece& piece) {
      return part == BackwardPart::all || piece.of_weights == (part == BackwardPart::weights);
    });
    end_layer(tape);
  }
  return tape;
}

}  // namespace rehearse
