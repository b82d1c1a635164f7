// The roofline with a step's kernels on it: how many operations each does for a byte, how fast it
// was, and what the device allows (Williams, Waterman and Patterson 2009).
#pragma once

#include "sim/program/timeline.hpp"
#include "strategies/lowering/step_program.hpp"
#include "tools/report/figure.hpp"
#include "topology/accelerator.hpp"

namespace rehearse {

/// Kernels of one name are one point, as large as their share of the time. Those without
/// operations (copies) have no place on it and are counted in the description.
Figure roofline_figure(const StepProgram& step, const Timeline& timeline, const Accelerator& device,
                       FlopsPerSecond peak, const FigureSize& size = {});

}  // namespace rehearse
