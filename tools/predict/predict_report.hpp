// Everything `rehearse predict` found out, and the forms it is told in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/predict/step_average.hpp"
#include "strategies/predict/step_times.hpp"
#include "tools/predict/reference_step.hpp"
#include "tools/predict/step_breakdown.hpp"
#include "tools/predict/training_cost.hpp"
#include "tools/predict/verdict.hpp"

namespace rehearse {

struct PredictReport {
  const LoadedScenario& loaded;
  const StepPredictor::Answer& answer;
  std::vector<BreakdownPart> parts;
  Verdict verdict;
  std::optional<AverageStep> average;  // where steps are not all alike
  std::optional<TrainingCost> cost;
  std::string engine = "fast";
  std::optional<ReferenceStep> reference;  // of another engine, when one was asked
  std::optional<StepTimes> times;          // of all seeds, when there are several
  double wall = 0;                         // seconds that the prediction took, without neighbours
  std::int64_t peak_memory = 0;            // bytes of this process
};

/// For people: Megatron's and torchtitan's words, pictures, a verdict.
std::string summary(const PredictReport& report);
/// What the longest kernels are, and what the step hung on.
std::string explanation(const PredictReport& report);
/// For scripts; keys in a fixed order.
std::string prediction_json(const PredictReport& report);
/// A row for each role.
std::string roles_csv(const PredictReport& report);

double gibibytes(Bytes bytes);

}  // namespace rehearse
