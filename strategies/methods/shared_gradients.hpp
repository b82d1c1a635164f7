// What ranks of different tensor, pipeline and shard places still tell each other between the last
// gradient and the optimizer. Strategies reduce gradients over replicas; this is the rest:
//
//   norms      weights that every tensor rank holds whole, while it saw a part of the tokens only
//              (sequence parallelism): their gradients are summed over the tensor ranks
//   embedding  tied to the head on another pipeline rank, where a copy of it is held: the two
//              gradients are summed between the first and the last stage
//   clipping   every rank takes the norm of its own gradients, and a few bytes are summed over all
//              ranks that hold different ones, dimension by dimension (as torchtitan does; Megatron
//              sums over all of them at once)
//
//   first stage  … B │ reduce │ norms │ embedding ─┐ │ norm │ ─ sum ─ │ optimizer │
//   last stage   B │ reduce │ norms │ ─ ─ ─ ─ ─ ─ ─┘ │ norm │ ─ sum ─ │ optimizer │
//
// As Megatron-LM does it: core/distributed/finalize_model_grads.py, core/optimizer/clip_grads.py.
#pragma once

#include <optional>
#include <vector>

#include "strategies/methods/strategy.hpp"

namespace rehearse {

class SharedGradients {
 public:
  /// As Strategy::plan().
  void plan(const StepPlan& plan, CollectiveUses& uses);
  /// Emits them, on all pipeline ranks. Their own gradients are complete, or waited for.
  void run(Emitter& out, const Strategy& strategy);

 private:
  void sum_partial(Emitter& out);
  void sum_tied(Emitter& out);
  void take_norm(Emitter& out, const Strategy& strategy);

  std::vector<std::optional<std::uint32_t>> partial_;  // uses, by pipeline rank
  std::optional<std::uint32_t> tied_;
  bool clips_ = false;
  std::vector<std::uint32_t> norm_;      // uses within a pipeline rank, one after the other
  std::optional<std::uint32_t> stages_;  // and over all of them
};

/// Whether the norm of the gradients is taken: as the scenario says, or for models of sequences;
/// not where each rank clips its own before it sends them (DGC).
bool clips_gradients(const StepPlan& plan);

}  // namespace rehearse
