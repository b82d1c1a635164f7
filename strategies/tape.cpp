// Which pieces belong to which action.
#include "strategies/tape.hpp"

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

void recompute_layer(Tape& tape, const LayerPieces& layer, Recompute recompute) {
  const bool whole = recompute == Recompute::full && layer.recomputes;
  const bool some = recompute == Recompute::selective;
  for (const Piece& piece : layer.forward)
    if (whole || (some && piece.recomputed)) tape.steps.push_back({&piece, Phase::recompute});
}

}  // namespace

Tape forward_tape(std::span<const LayerPieces* const> layers) {
  Tape tape;
  for (const LayerPieces* layer : layers) {
    for (const Piece& piece : layer->forward) tape.steps.push_back({&piece, Phase::forward});
    end_layer(tape);
  }
  return tape;
}

Tape backward_tape(std::span<const LayerPieces* const> layers, BackwardPart part,
                   Recompute recompute) {
  Tape tape;
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (part != BackwardPart::weights) recompute_layer(tape, *layers[l], recompute);
    for (const Piece& piece : layers[l]->backward)
      if (part == BackwardPart::all || piece.of_weights == (part == BackwardPart::weights))
        tape.steps.push_back({&piece, phase_of(part)});
    end_layer(tape);
  }
  return tape;
}

}  // namespace rehearse
