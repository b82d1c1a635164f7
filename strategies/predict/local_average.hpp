// Local SGD simulates several steps in a row; a prediction is about one of them.
#pragma once

#include <vector>

#include "strategies/predict/prediction.hpp"

namespace rehearse {

/// Times of `steps` steps become those of one in the mean.
void average_steps(Prediction& prediction, std::size_t steps);

/// How long each step took: from its first kernel to that of the next one, on the first role.
std::vector<Time> local_step_times(const StepProgram& step, const Timeline& timeline);

}  // namespace rehearse
