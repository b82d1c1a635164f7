// The distribution of the step time over many seeds: every one of them is a step simulated.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/workload/workload.hpp"
#include "topology/topology.hpp"

namespace rehearse {

struct StepTimes {
  std::vector<Time> steps;  // by seed, the first one's first
  Time mean() const;
  /// The smallest that a share `part` of them do not exceed (nearest rank); 0 and 1: the ends.
  Time quantile(double part) const;
  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

/// `seeds` of the scenario, on so many threads: the same whatever their number.
StepTimes step_times(const Scenario& scenario, const Workload& workload, const Topology& topology,
                     const CostModel& cost, std::size_t threads);

}  // namespace rehearse
