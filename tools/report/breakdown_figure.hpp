// Where a step goes: a bar for the mean over all ranks and one for each role, cut into compute by
// phase, exposed communication by dimension, and idle time.
#pragma once

#include "sim/program/timeline.hpp"
#include "strategies/predict/prediction.hpp"
#include "tools/report/figure.hpp"

namespace rehearse {

/// The parts of every bar add up to the step.
Figure breakdown_figure(const Prediction& prediction, const StepProgram& step,
                        const Timeline& timeline, const FigureSize& size = {});

}  // namespace rehearse
