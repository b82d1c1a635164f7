// What kernels of a stage take beyond their time alone at full clocks, in the mean of a step.
#pragma once

#include <array>

#include "strategies/plan/step_plan.hpp"

namespace rehearse {

/// All kernel sequences of a stage.
std::array<Tape*, 4> tapes_of(StageWork& work);
std::array<const Tape*, 4> tapes_of(const StageWork& work);

/// Kernels of a transformer that only pass over memory reach `elementwise_share` of a long copy's
/// rate in a step, those of its backward pass `elementwise_grad_share`.
void slow_sweeps(StageWork& work, const PieceList& pieces, const Accelerator& device);

/// A device draws about U c⁴ of its power, where U is the share of its peak that a stage would
/// reach at full clocks and c the clock (voltage rises with it): where U is above what its power
/// sustains, products take 1/c as long, c = (sustained_share / U)^¼. Kernels bound by memory keep
/// their time.
void slow_clocks(StageWork& work, const PieceList& pieces, const Accelerator& device);

/// Kernels of `replicas` devices that are not quite alike take as long as those of the slowest:
/// 1 + spread × E(largest of that many standard normal draws) times their time.
void charge_slowest_replica(StageWork& work, const PieceList& pieces, std::size_t replicas,
                            double spread);

}  // namespace rehearse
