// What kernels take beyond their time alone at full clocks: in the mean of a step, power holds the
// clocks of products down, and the host may launch more slowly than the device computes.
#pragma once

#include "strategies/step_network.hpp"

namespace rehearse {

/// Kernels of a transformer that only pass over memory reach `elementwise_share` of a long copy's
/// rate in a step, those of its backward pass `elementwise_grad_share`.
void slow_sweeps(StageWork& work, const Accelerator& device);

/// A device draws about U c⁴ of its power, where U is the share of its peak that a stage would
/// reach at full clocks and c the clock (voltage rises with it): where U is above what its power
/// sustains, products take 1/c as long, c = (sustained_share / U)^¼. Kernels bound by memory keep
/// their time.
void slow_clocks(StageWork& work, const Accelerator& device);

/// Kernels of `replicas` devices that are not quite alike take as long as those of the slowest:
/// 1 + spread × E(largest of that many standard normal draws) times their time.
void wait_for_slowest(StageWork& work, std::size_t replicas, double spread);

/// The device works through a stretch in G alone, and the host launches it in H; together they
/// take (G⁴ + H⁴)^¼: the longer of the two where they differ much, and more than either where they
/// are alike, since the host gets ahead in long kernels and falls behind in short ones.
void wait_for_host(StepPlan& plan, StepNetwork& network);

/// What the host's launches add to the update of a pipeline rank's parameters, tensor by tensor,
/// where it has waited for their sums (Framework::awaits_sums).
Time launches_of_update(const StepPlan& plan, std::uint32_t pipeline_rank);

/// What exchanges among replicas cost beyond the network where nothing computes beside them, by the
/// framework's `exchange_share`: its copies, its waits, buckets one after the other.
void add_to_exchanges(StepPlan& plan, StepNetwork& network);

}  // namespace rehearse
