// The pass that makes every whole collective of a lowered step, and every message, one flow over
// the links that it loads, at the time that it was remembered with (strategies/DECISIONS.md says
// why).
#pragma once

#include "strategies/fold/step_network.hpp"
#include "strategies/lowering/step_program.hpp"
#include "strategies/plan/imperfections.hpp"

namespace rehearse {

/// `folded` are the ranks of the step, `handovers` its messages. A jitter of the network makes
/// exchanges longer, each by a factor of its own.
void make_flows(StepProgram& step, const StepPlan& plan, StepNetwork& network,
                const FoldedRanks& folded, const Imperfections& imperfections);

/// Whether flows are only near the truth: exchanges of different streams or ranks may meet on a
/// link, or the gaps in a pipelined exchange leave the device to kernels beside it.
bool needs_transfers(const StepProgram& step, const StepPlan& plan, StepNetwork& network,
                     const FoldedRanks& folded);

}  // namespace rehearse
