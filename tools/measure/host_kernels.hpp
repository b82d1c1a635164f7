// The kernels that a scenario's step consists of, timed where they work, and what the cost model
// makes of them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/shaped_roofline.hpp"
#include "tools/measure/host_step.hpp"
#include "tools/measure/host_training.hpp"
#include "tools/measure/profile.hpp"

namespace rehearse {

/// The program with a marker in place of every transfer: its kernels, in their order, on their
/// bytes.
Program without_messages(const Program& program);

/// A step on real ranks: once whole, so that every buffer holds what it holds in a training, then
/// without its messages, timed: kernels follow one another on the bytes of the step, as there.
class StepKernels {
 public:
  StepKernels(const HostRanks& ranks, LoadedScenario scenario, std::function<bool()> stop);
  StepKernels(const StepKernels&) = delete;
  StepKernels& operator=(const StepKernels&) = delete;

  void round();

  /// Compute ops that differ in nothing but their bytes' places.
  struct Kind {
    std::string name;
    Compute work;
    std::vector<KernelCall> calls;
    double uses = 0;     // in a step, the mean over ranks
    double seconds = 0;  // each
  };
  /// The mean over the middle half of the runs, by their length: in sum these are a step of median
  /// length, and medians of single kernels need not be.
  std::vector<Kind> kinds() const;

 private:
  std::uint32_t kind_of(const Program::Op& op);

  LoadedScenario loaded_;
  HostStep step_;
  Program kernels_;
  HostMemory memory_;
  HostTraining training_;
  std::string kept_;
  std::unique_ptr<Executor> whole_, alone_;
  static constexpr std::uint32_t no_kind = UINT32_MAX;
  std::vector<Kind> kinds_;             // without seconds
  std::vector<std::uint32_t> kind_of_;  // by op
  std::vector<Timeline> runs_;
};

/// Adds to the changes: kernels by what the model knows of them, and one line over bytes for sizes
/// that nobody measured. Notes and residuals go to the profile.
void add_kernels(const std::deque<StepKernels>& steps, const Accelerator& device, Profile& profile,
                 AcceleratorChanges& changes);

}  // namespace rehearse
