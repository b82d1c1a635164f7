// Where the steps of a training are not all alike, the time of the average one: sparsity that warms
// up over the first epochs, updates that are skipped.
#pragma once

#include <optional>
#include <string>

#include "strategies/predict/predictor.hpp"

namespace rehearse {

struct AverageStep {
  Time step;          // of each update
  std::string words;  // what was averaged
};

/// Nothing where all steps are alike. `step` is that of the scenario itself; the others are
/// simulated.
std::optional<AverageStep> average_step(const Scenario& scenario, const Workload& workload,
                                        Time step, StepPredictor& predictor);

}  // namespace rehearse
