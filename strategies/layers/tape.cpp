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
void append(Tape& tape, const std::vector<Piece>& pieces, PieceId first, Phase phase, Take take) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!take(pieces[i])) continue;
    TapeStep& step = tape.steps.emplace_back(TapeStep{
        .piece = static_cast<PieceId>(static_cast<std::size_t>(first) + i), .phase = phase});
    const std::size_t end = std::min(pieces.size(), i + 1 + pieces[i].beside);
    for (std::size_t j = i + 1; j < end; ++j) {
      if (!take(pieces[j])) continue;
      ASSERT(std::holds_alternative<Compute>(pieces[j].work));
      ++step.beside;
    }
  }
}

void recompute_layer(Tape& tape, const ListedLayer& listed, Recompute recompute) {
  const bool whole = recompute == Recompute::full && listed.layer->recomputes;
  const bool some = recompute == Recompute::selective;
  append(tape, listed.layer->forward, listed.forward, Phase::recompute,
         [&](const Piece& piece) { return whole || (some && piece.recomputed); });
}

}  // namespace

PieceId PieceList::add(Piece piece) {
  pieces_.push_back(std::move(piece));
  return static_cast<PieceId>(pieces_.size() - 1);
}

ListedLayer PieceList::add(const LayerPieces& layer) {
  const auto next = [&] { return static_cast<PieceId>(pieces_.size()); };
  ListedLayer listed{&layer, next(), {}};
  pieces_.insert(pieces_.end(), layer.forward.begin(), layer.forward.end());
  listed.backward = next();
  pieces_.insert(pieces_.end(), layer.backward.begin(), layer.backward.end());
  return listed;
}

Tape forward_tape(std::span<const ListedLayer> layers) {
  Tape tape;
  for (const ListedLayer& listed : layers) {
    append(tape, listed.layer->forward, listed.forward, Phase::forward,
           [](const Piece&) { return true; });
    end_layer(tape);
  }
  return tape;
}

Tape backward_tape(std::span<const ListedLayer> layers, BackwardPart part, Recompute recompute) {
  Tape tape;
  for (std::size_t l = layers.size(); l-- > 0;) {
    const ListedLayer& listed = layers[l];
    if (part != BackwardPart::weights) recompute_layer(tape, listed, recompute);
    append(tape, listed.layer->backward, listed.backward, phase_of(part), [&](const Piece& piece) {
      return part == BackwardPart::all || piece.of_weights == (part == BackwardPart::weights);
    });
    end_layer(tape);
  }
  return tape;
}

}  // namespace rehearse
