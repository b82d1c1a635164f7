// From a measured training step to the scenario of it: what a user would have written. What a
// source leaves out is its framework's default, from one table.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/workload/workload.hpp"
#include "tools/accuracy/measured_rows.hpp"

namespace rehearse {

struct MeasuredStep {
  Scenario scenario;
  Workload workload;
};

/// Throws InputError with the reason where we have no words for it.
MeasuredStep step_of(const TrainingMeasured& row);
MeasuredStep step_of(const DataParallelMeasured& row);

}  // namespace rehearse
