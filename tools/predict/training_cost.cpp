// Steps × step time; nothing is added for checkpoints, evaluation or failures.
#include "tools/predict/training_cost.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tools/output/chart.hpp"

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
  const double parallel =
      prediction.mean.compute.seconds().count() / prediction.step.seconds().count();
  cost.law = {.work = steps * prediction.model_flops.count(),
              .peak = prediction.peak.count(),
              .kernel_efficiency = parallel > 0 ? prediction.mfu() / parallel : 0,
              .parallel_efficiency = parallel,
              .devices = static_cast<double>(prediction.world)};
  if (training.gradient_noise_scale > 0) {
    const double batch = prediction.tokens > 0 ? prediction.tokens : prediction.samples;
    const double efficiency = 1 / (1 + batch / training.gradient_noise_scale);
    cost.target = TimeToTarget{.noise_scale = training.gradient_noise_scale,
                               .data_efficiency = efficiency,
                               .steps = std::ceil(steps / efficiency),
                               .days = cost.days / efficiency};
  }
  return cost;
}

std::string scaling_words(const TrainingCost& cost) {
  const ScalingLaw& law = cost.law;
  std::string text = fmt::format(
      "  = {:.3g} FLOP / ({:.5g} TFLOP/s × {:.1f} % in kernels × {:.0f} devices × {:.1f} % "
      "parallel "
      "efficiency)\n",
      law.work, law.peak * 1e-12, 100 * law.kernel_efficiency, law.devices,
      100 * law.parallel_efficiency);
  if (cost.target)
    text += fmt::format(
        "  to the target of a small batch, by a model (steps ~ 1 + B_noise/B, McCandlish et al. "
        "2018):\n  a sample is worth {:.1f} % of one in a small batch: {} steps, {} days\n",
        100 * cost.target->data_efficiency, grouped(cost.target->steps, 0),
        grouped(cost.target->days, 2));
  return text;
}

}  // namespace rehearse
