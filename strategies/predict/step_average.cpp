// Every kind of step is simulated, and weighed by how often it comes.
#include "strategies/predict/step_average.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/methods/gradient_compression.hpp"

namespace rehearse {

std::optional<AverageStep> average_step(const Scenario& scenario, const Workload& workload,
                                        Time step, StepPredictor& predictor) {
  const Compression& compression = scenario.compression;
  const Training& training = scenario.training;
  const bool warms_up = compression.method == CompressionKind::dgc && compression.warmup_epochs > 0;
  const bool skips = training.loss_scaling == LossScaling::dynamic;
  if (!warms_up && !skips) return std::nullopt;
  double seconds = step.seconds().count();
  std::string words;
  if (warms_up) {
    const double epochs = std::max(training.epochs, compression.warmup_epochs);
    double sum = (epochs - compression.warmup_epochs) * seconds, left = compression.warmup_epochs;
    for (const double sparsity : warmup_sparsities(compression)) {
      Scenario early = scenario;
      early.compression.sparsity = sparsity;
      sum += std::min(left, 1.0) * predictor.quick(early, workload).step.seconds().count();
      left -= 1;
    }
    seconds = sum / epochs;
    words =
        fmt::format("over {:g} epochs, {:g} of them warm-up", epochs, compression.warmup_epochs);
  }
  if (skips) {
    const auto window = static_cast<double>(training.loss_scale_window);
    seconds += predictor.quick(scenario, workload, Update::skipped).step.seconds().count() / window;
    words += fmt::format("{}one update of {} skipped", words.empty() ? "" : "; ",
                         training.loss_scale_window + 1);
  }
  return AverageStep{Time::round(Seconds{seconds}), words};
}

}  // namespace rehearse
