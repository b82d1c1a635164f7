// A pipeline as everybody draws it: a lane for each pipeline rank, boxes with the number of their
// micro-batch, blank where a rank idles.
#pragma once

#include "sim/program/timeline.hpp"
#include "strategies/lowering/step_program.hpp"
#include "strategies/schedules/step_times.hpp"
#include "tools/report/figure.hpp"

namespace rehearse {

/// As the engine ran it, with the transfers between stages on narrow lanes. Of ranks that play the
/// same pipeline rank the first one is shown.
Figure pipeline_figure(const StepProgram& step, const Timeline& timeline,
                       const FigureSize& size = {});

/// As the schedule alone says, stages alike and communication free; `unit` is how long one step of
/// `times` takes. The schedule must be able to run.
Figure schedule_figure(const Schedule& schedule, const StageTimes& times, Time unit,
                       const FigureSize& size = {});

}  // namespace rehearse
