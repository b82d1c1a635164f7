// A scenario's step made ready for real ranks: lowered whole, its collectives expanded, and the way
// back from what was executed to what was asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario_file.hpp"
#include "strategies/numbers/training_data.hpp"
#include "strategies/predictor.hpp"
#include "tools/host_ranks.hpp"

namespace rehearse {

struct HostStep {
  StepProgram whole;               // every rank's own ops, whole collectives
  Program program;                 // the same, expanded: what runs
  std::vector<OpId> origin;        // by op of `program`: the op of `whole` that it is part of
  std::optional<BoundStep> bound;  // with real arithmetic: what it needs and leaves
};

/// With `calls`, every op has its kernels and buffers. Throws InputError for what cannot be run op
/// by op, or with numbers.
HostStep host_step(const LoadedScenario& loaded, StepPredictor& predictor, Routing& routing,
                   HostCompute compute);

/// A timeline of the expanded program, told of the whole one: a collective lasts from its first
/// transfer to its last.
Timeline told_of_whole(const HostStep& step, const Timeline& timeline);

struct HostSteps {
  std::vector<Timeline> timelines;  // of each step, of the expanded program
  std::vector<double> losses;       // of each step, with real arithmetic
  std::size_t median = 0;           // the one with the median step time
  double spread = 0;                // (slowest - fastest) / median
  Time step() const { return timelines[median].makespan; }
};

struct HostStepOptions {
  HostCompute compute = HostCompute::paced;
  std::size_t steps = 5;
  std::function<bool()> stop;
};

/// One step to warm up, then as many as asked for.
HostSteps run_steps(const HostStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
                    const HostStepOptions& options);

/// Index of the median of some times, and their spread.
std::size_t median_of(const std::vector<Time>& times);
double spread_of(const std::vector<Time>& times);

}  // namespace rehearse
