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

#include "sim/precision.hpp"
#include "sim/scenario.hpp"
#include "sim/workload.hpp"
#include "strategies/layer_pieces.hpp"
#include "strategies/placement.hpp"

namespace rehearse {

/// How the layers of a workload are cut, and in which numbers.
struct Sharding {
  std::int64_t micro_batch = 1;  // samples
  std::int64_t seq_length = 1;   // of the whole sequence
  std::int64_t tensor = 1, context = 1, expert = 1;
  bool sequence_parallel = false;
  bool ring_attention = false;  // keys and values go round the context ranks in blocks
  double expert_capacity = 0, expert_imbalance = 1;  // as in Parallelism
  Precision precision = Precision::bf16;
  bool gradients_in_fp32 = false;
  bool flash_attention = true;
  bool dropout = false;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// What a scenario asks for. Throws InputError as check_sharding does.
Sharding sharding_of(const Workload&, const Parallelism&, const Training&);

/// What of a workload stages, tensor ranks and context ranks divide, for model_problems().
SplitNumbers split_numbers(const Workload&, std::int64_t seq_length);

/// All that does not divide, with the arithmetic. Layers over stages are not looked at.
std::vector<KeyProblem> sharding_problems(const Workload&, const Sharding&);
/// Throws InputError with everything in sharding_problems().
void check_sharding(const Workload&, const Sharding&);

/// What one rank does for one micro-batch of a layer. The sharding must pass check_sharding.
LayerPieces pieces_of(const Workload&, std::size_t layer, const Sharding&);

/// The vocabulary as the ranks hold it: padded to a multiple of 128 × tensor ranks, as Megatron
/// does, when it is split at all.
std::int64_t padded_vocabulary(std::int64_t words, std::int64_t tensor);

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
  /// Replaces every layer by what the pass makes of it (autocast.hpp, fusion.hpp).
  template <class Pass>
  void apply(Pass&& pass) {
    for (LayerPieces& kind : kinds_) kind = pass(std::move(kind));
  }
  /// Parameters tied to those of another layer are held twice from now on: their owners stand on
  /// different pipeline ranks. Gives how many.
  std::int64_t copy_tied_parameters();

 private:
  std::vector<LayerPieces> kinds_;
  std::vector<std::uint32_t> kind_of_;  // by layer
};

}  // namespace rehearse
