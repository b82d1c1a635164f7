// The whole training, when the scenario says how long it is: days, GPU-hours, money.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario.hpp"
#include "strategies/prediction.hpp"

namespace rehearse {

struct TrainingCost {
  double steps = 0, days = 0, gpu_hours = 0;
  std::optional<double> price;  // when there is a price for an hour
  std::string currency;
};

/// Nothing when the scenario gives neither tokens nor epochs. The last step is a whole one. `step`
/// is the time of the average one.
std::optional<TrainingCost> training_cost(const Training& training, const Prediction& prediction,
                                          Time step);

}  // namespace rehearse
