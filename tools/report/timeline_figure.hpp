// What every rank did when, stream by stream: kernels, collectives, transfers.
#pragma once

#include "sim/program/timeline.hpp"
#include "strategies/lowering/step_program.hpp"
#include "tools/report/figure.hpp"

namespace rehearse {

/// A training step: a group of lanes for each role (ranks that do the same), kernels in the colour
/// of their phase.
Figure timeline_figure(const StepProgram& step, const Timeline& timeline,
                       const FigureSize& size = {});

/// Any program: a group of lanes for each rank, the first few ranks of many.
Figure timeline_figure(const Program& program, const Timeline& timeline,
                       const FigureSize& size = {});

}  // namespace rehearse
