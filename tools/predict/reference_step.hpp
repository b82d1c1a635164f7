// The same step in another engine: every rank's own ops, every collective in transfers, nothing
// folded or remembered. Slow, and independent: the second opinion of `--engine simgrid`.
#pragma once

#include <string_view>

#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/predictor.hpp"

namespace rehearse {

struct ReferenceStep {
  Time step;
  std::size_t ops = 0;
};

/// Throws InputError where there are too many ops for such an engine.
ReferenceStep run_reference(std::string_view engine, const LoadedScenario& loaded,
                            StepPredictor& predictor, const CostModel& cost);

}  // namespace rehearse
