// What one rank does for one layer and one micro-batch, in the order of its stream: kernels, and
// the collectives inside the layer that a split of its operators needs. Strategies cut layers into
// pieces (tensor_parallel.hpp); lower.cpp strings the pieces of a schedule together.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/program/program.hpp"
#include "strategies/placement/dimension.hpp"

namespace rehearse {

/// A collective of the layer's own group in `dimension`; `size` as nccl-tests counts it: the whole
/// data of an all-reduce, the gathered whole of an all-gather and of a reduce-scatter.
struct Exchange {
  Dimension dimension{};
  CollectiveKind kind{};
  Bytes size;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// How far a kernel goes element by element: `ends` so (a norm, once it has its sums), or `whole`.
enum class Elementwise : std::uint8_t { no, ends, whole };

struct Piece {
  std::string name;  // as a profiler would show it: "attention.qkv"
  std::variant<Compute, Exchange> work;
  bool of_weights = false;  // backward: what zero-bubble schedules put off (PyTorch's W)
  bool recomputed = false;  // forward: what selective recomputation runs again
  std::uint8_t beside = 0;  // an exchange: so many pieces after it do not wait for it
  Elementwise elementwise = Elementwise::no;
  bool result_is_kept = false;  // others than the next kernel read its result, too
  Bytes result;                 // what it writes for the next one; 0: not said
  std::uint8_t launches = 1;    // of the host; an unfused kernel stands for several
  std::int64_t weights = 0;     // of a product: how many it reads, or makes the gradient of
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// Bytes that a forward pass leaves for its backward pass on one rank, by what they are.
enum class ActivationKind : std::uint8_t { input, attention, mlp, norm, loss };
inline constexpr std::size_t activation_kinds = 5;
using Activations = std::array<Bytes, activation_kinds>;

struct LayerPieces {
  std::string name;
  std::vector<Piece> forward, backward;  // backward: of inputs and weights, as autograd runs them
  bool recomputes = true;                // full recomputation applies to it: blocks, not the loss
  std::int64_t parameters = 0;           // held by this rank
  std::int64_t tensors = 0;              // that they are in
  std::int64_t expert_parameters = 0;    // of `parameters`: other expert ranks hold other ones
  std::int64_t tied_parameters = 0;      // the embedding's; held here too on another stage than it
  std::int64_t partial_parameters = 0;   // of `parameters`: whole on each tensor rank, their
                                         // gradients in parts (norms under sequence parallelism)
  Activations kept{};                    // without recomputation
  Activations kept_selective{};          // when `recomputed` pieces run again
  Bytes input;        // what arrives from the layer before: all that full recomputation keeps
  Bytes output;       // what goes to the layer after it, on this rank
  Flops model_flops;  // forward and backward of the whole layer, all ranks, without recomputation
  friend bool operator==(const LayerPieces&, const LayerPieces&) = default;
};

std::string_view to_string(ActivationKind);

}  // namespace rehearse
