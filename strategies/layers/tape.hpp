// The work of one rank for one action of a schedule, strung together layer by layer.
//
//   forward     │ embedding │ block 0 │ block 1 │
//   backward    │ block 1 │ block 0 │ embedding │            recomputation runs a layer's forward
//   recompute   │ block 1 F, B │ block 0 F, B │ embedding │  again just before its backward
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "strategies/layers/layer_pieces.hpp"
#include "strategies/layers/phase.hpp"

namespace rehearse {

enum class PieceId : std::uint32_t {};

/// A layer, and where its pieces stand in a list.
struct ListedLayer {
  const LayerPieces* layer = nullptr;
  PieceId forward{}, backward{};  // its first ones; the others follow
};

/// The pieces of a step, each once: tapes name them by their place.
class PieceList {
 public:
  PieceId add(Piece piece);
  ListedLayer add(const LayerPieces& layer);
  const Piece& operator[](PieceId id) const { return pieces_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return pieces_.size(); }
  friend bool operator==(const PieceList&, const PieceList&) = default;

 private:
  std::vector<Piece> pieces_;
};

struct TapeStep {
  PieceId piece{};
  Phase phase{};
  std::uint32_t use = 0;    // of an exchange: which of the step's collectives
  Time time;                // of a kernel, alone
  Time extra;               // of it: what slower clocks and waiting for the host add
  std::uint8_t beside = 0;  // of an exchange: so many steps after it, all kernels, do not wait
  friend bool operator==(const TapeStep&, const TapeStep&) = default;
};

struct Tape {
  std::vector<TapeStep> steps;
  std::vector<std::uint32_t> layer_end;  // where each layer ends, in the tape's order
  friend bool operator==(const Tape&, const Tape&) = default;
};

/// Of a backward pass: all of it, or one of the two halves of zero-bubble schedules.
enum class BackwardPart : std::uint8_t { all, inputs, weights };

Tape forward_tape(std::span<const ListedLayer> layers);
/// `layers` in forward order, too.
Tape backward_tape(std::span<const ListedLayer> layers, BackwardPart part, Recompute recompute);

}  // namespace rehearse
