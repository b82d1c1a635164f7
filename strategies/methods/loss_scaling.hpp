// Dynamic loss scaling (Micikevicius et al. 2018, section 3.2): small gradients vanish in fp16, so
// the loss is multiplied by a scale before the backward pass, and the gradients divided by it
// after.
//
//   [loss] ─[× scale]─▶ backward … reduce ─[÷ scale, any inf or nan?]─[all-reduces 4 B]─▶ optimizer
//
// An inf or nan anywhere: nobody updates, and the scale is halved. After `loss_scale_window` good
// steps it doubles, so in the steady state about one step of so many overflows and is skipped.
#pragma once

#include "strategies/methods/strategy.hpp"

namespace rehearse {

/// Adds the exchanges of the check. All that have different gradients hear of each other: along tp,
/// where ZeRO cuts, and over the stages of the pipeline, as Megatron's optimizer joins found_inf
/// over its model-parallel group. (Replicas have the same: inf and nan survive the sum.)
void plan_overflow_check(StepPlan& plan);
/// Emits the check of all pipeline ranks, when the scenario asks for it; the next kernels wait for
/// it.
void check_overflow(Emitter& out, const Strategy& strategy);

}  // namespace rehearse
