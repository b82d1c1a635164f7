// The third virtual seam: what happens to parameters and gradients around the layers. The schedule
// (lower.cpp) runs the layers and calls these at the places where a strategy may act; each strategy
// is a file that emits its communication, its optimizer and its memory.
//
//   begin_step ─▶ { before_layers ─ layers of an action ─ after_layer … } per action
//              ─▶ finish_gradients ─ what all ranks share (shared_gradients.hpp) ─▶ end_step
#pragma once

#include <memory>

#include "strategies/lowering/emitter.hpp"

namespace rehearse {

/// A layer's place in an action: `layer` counts from the stage's first, in forward order.
struct LayerMoment {
  ActionKind action{};
  std::uint32_t layer = 0;
  bool first_microbatch = false, last_microbatch = false;  // of this stage and kind of action
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Before anything is emitted: what it will exchange, by the numbers of the uses, which are added
  /// when they are new. It may be asked again for a plan that has them all.
  virtual void plan(const StepPlan& plan, CollectiveUses& uses) = 0;
  /// What a pipeline rank holds and does before its first action.
  virtual void begin_step(Emitter& out, std::uint32_t pipeline_rank) = 0;
  /// Whether it wants to act between the layers of such an action, not only around all of them.
  virtual bool acts_between_layers(const LayerMoment& moment) const = 0;
  virtual void before_layer(Emitter& out, const LayerMoment& moment) = 0;
  virtual void after_layer(Emitter& out, const LayerMoment& moment) = 0;
  /// After the pipeline rank's last action: what is left of its gradients to reduce, and waits.
  virtual void finish_gradients(Emitter&, std::uint32_t /*pipeline_rank*/) {}
  /// How many parameters a rank of it updates: the gradients that it has a norm of.
  virtual std::int64_t updated_parameters(const StepPlan&, std::uint32_t /*pipeline_rank*/) const {
    return 0;
  }
  /// Then the optimizer, and what follows it.
  virtual void end_step(Emitter& out, std::uint32_t pipeline_rank) = 0;
};

/// Synchronous data parallelism with or without ZeRO, as the scenario says.
std::unique_ptr<Strategy> make_strategy(const StepPlan& plan);

}  // namespace rehearse
