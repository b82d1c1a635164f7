// Where a step goes: its time as shares that add up to all of it, the mean over all ranks; and
// which kernels a role spends its time in.
#pragma once

#include <string>
#include <vector>

#include "sim/program/timeline.hpp"
#include "strategies/predict/prediction.hpp"

namespace rehearse {

struct BreakdownPart {
  std::string name;  // "forward", "exposed data", "bubble"
  Seconds time;
};

/// Compute by phase, exposed communication by dimension, bubble: only those that there are.
std::vector<BreakdownPart> breakdown(const Prediction& prediction, const StepProgram& step,
                                     const Timeline& timeline);

struct KernelTime {
  std::string name;
  std::size_t calls = 0;
  Time time;
};
/// Of one role, hidden communication too, the longest first.
std::vector<KernelTime> kernel_times(const StepProgram& step, const Timeline& timeline,
                                     const Role& role);

}  // namespace rehearse
