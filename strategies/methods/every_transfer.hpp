// A step whose collectives meet on their links, simulated transfer by transfer where that is
// affordable: a remembered collective is an even flow or a few bursts, and where two meet that is
// near the truth but not it.
//
//   step, remembered and folded      [F0][all_reduce      ][B0]     what reports and traces show
//   the same with every transfer     [F0][·][·]·[·]··[·][·][B0]     when it really happens
#pragma once

#include <optional>

#include "sim/engine/executor.hpp"
#include "strategies/collectives/expand.hpp"
#include "strategies/lowering/step_program.hpp"
#include "strategies/plan/step_plan.hpp"

namespace rehearse {

/// Whether a step is small enough: at most some ten thousand kernels on all ranks together. The
/// same for whatever part of its micro-batches is looked at.
bool is_small(const StepPlan& plan);

/// How a step is lowered to be expanded: every rank's own ops, and whole collectives.
inline constexpr LowerOptions expandable{.fold = false, .last = Pass::perturb};

/// Such a step, and every collective in the transfers of the algorithm that was decided for it;
/// nothing when these are more than `most_ops`.
struct WholeStep {
  StepProgram step;
  Expanded expanded;
};
std::optional<WholeStep> expand_step(StepProgram step, Routing& routing, std::size_t most_ops);

/// When the ops of `step`, lowered from the same plan with collectives remembered and kernel by
/// kernel, happen in the run of `whole`: an exchange from its first transfer to its last.
Timeline seen_from(const StepProgram& step, const WholeStep& whole, const Timeline& run);

}  // namespace rehearse
