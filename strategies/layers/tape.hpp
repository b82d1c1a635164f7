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

struct TapeStep {
  const Piece* piece = nullptr;  // its owner outlives the tape
  Phase phase{};
  std::uint32_t use = 0;    // of an exchange: which of the step's collectives
  Time time;                // of a kernel, alone
  Time extra;               // of it: what slower clocks and waiting for the host add
  std::uint8_t beside = 0;  // of an exchange: so many steps after it, all kernels, do not wait
};

struct Tape {
  std::vector<TapeStep> steps;
  std::vector<std::uint32_t> layer_end;  // where each layer ends, in the tape's order
};

/// Of a backward pass: all of it, or one of the two halves of zero-bubble schedules.
enum class BackwardPart : std::uint8_t { all, inputs, weights };

Tape forward_tape(std::span<const LayerPieces* const> layers);
/// `layers` in forward order, too.
Tape backward_tape(std::span<const LayerPieces* const> layers, BackwardPart part,
                   Recompute recompute);

}  // namespace rehearse
