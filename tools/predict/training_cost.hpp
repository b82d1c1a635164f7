// The whole training, when the scenario says how long it is: days, GPU-hours, money.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario/scenario.hpp"
#include "strategies/predict/prediction.hpp"

namespace rehearse {

/// training time = work / (device rate × devices × parallel efficiency), where a device's rate is
/// its peak times what its kernels make of it.
struct ScalingLaw {
  double work = 0;  // FLOP of the whole training
  double peak = 0;  // FLOP/s of a device
  double kernel_efficiency = 0, parallel_efficiency = 0;
  double devices = 0;
};

/// A model, no simulation: steps to a target grow as 1 + B_noise / B with a smaller batch B, data
/// as 1 + B / B_noise with a larger one (McCandlish et al. 2018, "An empirical model of large-batch
/// training"). What the scenario says of the training's length is then what a small batch needs.
struct TimeToTarget {
  double noise_scale = 0;      // samples, or tokens where the model has them
  double data_efficiency = 0;  // of a sample, against one in a small batch
  double steps = 0, days = 0;
};

struct TrainingCost {
  double steps = 0, days = 0, gpu_hours = 0;
  std::optional<double> price;  // when there is a price for an hour
  std::string currency;
  ScalingLaw law;
  std::optional<TimeToTarget> target;
};

/// Nothing when the scenario gives neither tokens nor epochs. The last step is a whole one. `step`
/// is the time of the average one.
std::optional<TrainingCost> training_cost(const Training& training, const Prediction& prediction,
                                          Time step);
/// Lines that explain the figure by its factors.
std::string scaling_words(const TrainingCost& cost);

}  // namespace rehearse
