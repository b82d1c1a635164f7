// Gives the ops of a lowered step their buffers and kernels, so that an
// executor can train with the very Program that the simulators time. A pass: it
// adds to ops, and changes no op and no edge.
//
//   lower_step(plan, network, bindable) ─▶ StepProgram with notes ─bind─▶
//   BoundStep ─▶ executor
//
// One Program is one step (several in a row for local SGD): parameters, moments
// and the StepState stay in their buffers from step to step; before each the
// input buffers are filled (training_data.hpp), behind it the loss is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/binding/layout.hpp"
#include "strategies/binding/training_numbers.hpp"
#include "strategies/lowering/step_program.hpp"
#include "strategies/plan/step_plan.hpp"

namespace rehearse {

/// How a step must be lowered to be bound: every rank, every kernel, whole
/// collectives.
inline constexpr LowerOptions bindable{
    .grain = Grain::kernels, .fold = false, .notes = true, .last = Pass::perturb};

enum class FeedKind : std::uint8_t { vectors, labels, tokens, targets };

/// Input of a step: what a rank reads of which sample.
struct Feed {
  FeedKind kind{};
  Rank rank{};
  Slice slice;
  std::int64_t first_sample = 0, samples = 0;  // of the global batch
  std::int64_t width = 0;                      // numbers or tokens of a sample
  std::uint32_t step = 0;                      // of those in the program
  Precision stored = Precision::fp32;          // vectors
};

/// A part of a parameter tensor on a rank that is up to date behind a step: the
/// one that updates it.
struct ParameterPart {
  std::uint32_t layer = 0, tensor = 0;  // of ModelLayout
  Rank rank{};
  std::size_t tensor_place = 0;
  Slice slice;             // of the parameters
  std::int64_t first = 0;  // its first number, in the rank's part of the tensor
  Precision stored = Precision::fp32;
};

struct BoundStep {
  StepProgram step;  // as it was lowered; its Program has buffers and kernels now
  ModelLayout layout;
  std::uint32_t steps = 1;  // of training, in one run of the program
  std::vector<Feed> feeds;
  struct LossSlot {
    Rank rank{};
    Slice slice;             // one fp64: the sum over samples or tokens
    std::uint32_t step = 0;  // of those in the program
  };
  std::vector<LossSlot> losses;      // add up to the global batch's
  std::int64_t loss_count = 1;       // samples or tokens of the global batch
  std::vector<ParameterPart> owned;  // all parameters in fp32, each once
  /// All tensors on all ranks that hold them, and the masters of what they update: for the
  /// beginning.
  std::vector<ParameterPart> copies;
  std::vector<std::pair<Rank, Slice>> states;  // StepState of every rank
  bool scales_loss = false;
  /// All that one step leaves for the next: what a checkpoint holds.
  std::vector<std::pair<Rank, Slice>> persistent;

  const Program& program() const { return step.program; }
};

/// Why a plan cannot be run with numbers: combinations for which there are no
/// kernels, or whose step leaves an exchange out that numbers would need.
/// Empty: it can.
std::vector<std::string> binding_problems(const StepPlan& plan, const Workload& workload);

/// `step` is the plan's, lowered as `bindable`. Throws InputError with
/// binding_problems().
BoundStep bind(const StepPlan& plan, const Workload& workload, StepProgram step,
               const TrainingNumbers& numbers);

/// The whole line from a scenario that has been checked to its bound step.
BoundStep bound_step_of(const Scenario& scenario, const Workload& workload,
                        const Topology& topology, const CostModel& cost,
                        const TrainingNumbers& numbers);

}  // namespace rehearse
