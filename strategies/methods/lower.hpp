// From a plan and its strategy to the one Program of a training step.
#pragma once

#include "strategies/fold/step_network.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

/// The plan with all that its step exchanges on this network, and what the host's launches and the
/// framework add to its kernels and exchanges.
StepPlan complete_plan(StepPlan plan, StepNetwork& network);

/// The whole step of a complete plan, with the scenario's strategy for parameters and gradients.
/// `blocks` merge stretches of kernels that nothing can interrupt, and give the same times.
StepProgram lower_step(const StepPlan& plan, StepNetwork& network, const CostModel& cost,
                       const LowerOptions& options);

}  // namespace rehearse
