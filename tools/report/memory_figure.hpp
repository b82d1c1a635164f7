// What a device holds over time, stacked by kind, against what it has.
#pragma once

#include <vector>

#include "sim/program/timeline.hpp"
#include "strategies/predict/prediction.hpp"
#include "tools/report/figure.hpp"

namespace rehearse {

/// What a role holds from a moment on.
struct MemoryMoment {
  Time time;
  MemoryUse use{};
};
/// From the beginning on; of changes at one moment only the result is there, but for a peak within
/// it, which is kept.
std::vector<MemoryMoment> memory_over_time(const Timeline& timeline, const Role& role);

/// One stack below the other for the role with the highest peak and a few others.
Figure memory_figure(const Prediction& prediction, const StepProgram& step,
                     const Timeline& timeline, const FigureSize& size = {});

}  // namespace rehearse
