// Steps × step time; nothing is added for checkpoints, evaluation or failures.
#include "tools/training_cost.hpp"

#include <cmath>

namespace rehearse {

std::optional<TrainingCost> training_cost(const Training& training, const Prediction& prediction,
                                          Time step) {
  double steps = 0;
  if (training.tokens > 0 && prediction.tokens > 0)
    steps = std::ceil(training.tokens / prediction.tokens);
  else if (training.epochs > 0 && training.samples_per_epoch > 0)
    steps = std::ceil(training.epochs * training.samples_per_epoch / prediction.samples);
  if (steps <= 0) return std::nullopt;
  const double hours = steps * step.seconds().count() / 3600;
  TrainingCost cost{.steps = steps,
                    .days = hours / 24,
                    .gpu_hours = hours * static_cast<double>(prediction.world),
                    .price = std::nullopt,
                    .currency = training.currency};
  if (training.price_per_gpu_hour > 0) cost.price = cost.gpu_hours * training.price_per_gpu_hour;
  return cost;
}

}  // namespace rehearse
