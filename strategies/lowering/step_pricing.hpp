// What a step takes beyond its kernels and exchanges alone: the host may launch more slowly than
// the device computes, and frameworks add to their exchanges.
#pragma once

#include "strategies/fold/step_network.hpp"

namespace rehearse {

/// The device works through a stretch in G alone, and the host launches it in H; together they
/// take (G⁴ + H⁴)^¼: the longer of the two where they differ much, and more than either where they
/// are alike, since the host gets ahead in long kernels and falls behind in short ones.
void charge_host_launches(StepPlan& plan, StepNetwork& network);

/// What the host's launches add to the update of a pipeline rank's parameters, tensor by tensor,
/// where it has waited for their sums (Framework::awaits_sums).
Time launches_of_update(const StepPlan& plan, std::uint32_t pipeline_rank);

/// What exchanges among replicas cost beyond the network where nothing computes beside them, by the
/// framework's `exchange_share`: its copies, its waits, buckets one after the other.
void charge_framework_overhead(StepPlan& plan, StepNetwork& network);

}  // namespace rehearse
