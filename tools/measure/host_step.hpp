// A scenario's step made ready for real ranks: lowered whole, its collectives expanded, and the way
// back from what was executed to what was asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "strategies/binding/training_data.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/servers/parameter_server.hpp"
#include "tools/measure/host_ranks.hpp"

namespace rehearse {

struct HostStep {
  StepProgram whole;                  // every rank's own ops, whole collectives
  Program program;                    // the same, expanded: what runs
  std::vector<OpId> origin;           // by op of `program`: the op of `whole` that it is part of
  std::vector<CollectivePart> parts;  // which of its ops are calls of MPI
  std::optional<BoundStep> bound;     // with real arithmetic: what it needs and leaves
  TrainingNumbers numbers;            // with which it was bound
  /// With parameter servers: who trains and who serves, and what every op of `whole` is.
  struct Servers {
    ServerPlan plan;
    ServerProgram lowered;
  };
  std::optional<Servers> servers;
  /// Training steps in one run of the program.
  std::uint32_t steps_each = 1;
};

/// With `calls`, every op has its kernels and buffers. Throws InputError for what cannot be run op
/// by op, or with numbers. `by_library`: collectives stay MPI's.
HostStep host_step(const LoadedScenario& loaded, HostCompute compute,
                   const TrainingNumbers& numbers, bool by_library = false);

/// A timeline of the expanded program, told of the whole one: a collective lasts from its first
/// transfer to its last.
Timeline told_of_whole(const HostStep& step, const Timeline& timeline);

struct HostSteps {
  std::vector<Timeline> timelines;  // of each step, of the expanded program
  std::vector<double> losses;       // of each training step, with real arithmetic
  std::vector<ScaledLoss> scaled;   // the same, with dynamic loss scaling
  std::uint64_t first = 0;          // training steps before these, of a run that was resumed
  std::size_t median = 0;           // the one with the median step time
  double spread = 0;                // (slowest - fastest) / median
  Time step() const { return timelines[median].makespan; }
};

struct HostStepOptions {
  HostCompute compute = HostCompute::paced;
  std::size_t steps = 5;
  std::function<bool()> stop;
  std::function<void(std::size_t)> before;  // each step that is timed, from 0
  std::string checkpoint, resume;           // files, with real arithmetic; empty: none
  std::uint64_t checkpoint_every = 0;       // training steps; 0: at the end only
};

/// One step to warm up, which trains nothing; then as many as asked for. Throws DeviceError when
/// stopped: with a checkpoint behind the step that runs, if it ends soon, else at once.
HostSteps run_steps(const HostStep& step, const LoadedScenario& loaded, const HostRanks& ranks,
                    const HostStepOptions& options);

class HostTraining;
/// The same on an executor of its own: for this very program, and the training whose memory it has;
/// none: nothing is trained.
HostSteps run_steps(const HostStep& step, const HostRanks& ranks, const HostStepOptions& options,
                    Executor& executor, HostTraining* training);
/// Asked in the middle of a step. With a checkpoint to leave behind, a step may come to its end, if
/// that does not take too long.
std::function<bool()> stop_within_step(const HostStepOptions& options);

/// Index of the median of some times, and their spread.
std::size_t median_of(const std::vector<Time>& times);
double spread_of(const std::vector<Time>& times);

}  // namespace rehearse
