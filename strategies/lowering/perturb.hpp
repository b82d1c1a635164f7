// The pass that makes the kernels of a lowered step take the times of imperfect ranks.
#pragma once

#include "sim/engine/cost_model.hpp"
#include "strategies/lowering/step_program.hpp"
#include "strategies/plan/imperfections.hpp"

namespace rehearse {

/// Slow ranks, jitter of ranks and kernels, pauses: every kernel of a rank that they concern takes
/// a time of its own. `device` computes every rank, at what `cost` says.
void perturb_kernels(StepProgram& step, const Imperfections& imperfections,
                     const Accelerator& device, const CostModel& cost);

}  // namespace rehearse
