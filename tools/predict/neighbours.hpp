// What else one could do: the strategies one change away from a scenario's own, each predicted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/predictor.hpp"

namespace rehearse {

/// Settings as --set takes them: {"schedule=Interleaved1F1B", "vpp=2"}.
using Change = std::vector<std::string>;

struct Neighbour {
  Change change;
  Time step;
  double samples = 0;  // a step: as many as before, unless the batch follows from what changed
  double samples_per_second = 0;
  Bytes peak;  // of the role that holds most
  bool fits = true;
};

/// One step away: micro-batch, sizes, schedule, recomputation, ZeRO, overlap.
std::vector<Change> single_changes(const Scenario& scenario, const Prediction& prediction);
/// What can make a step smaller.
std::vector<Change> smaller_changes(const Scenario& scenario, const Prediction& prediction);
/// Every two of them that set different keys.
std::vector<Change> pairs(std::span<const Change> changes);

/// Those of the changes that come out even, in their order.
std::vector<Neighbour> evaluate(StepPredictor& predictor, const LoadedScenario& loaded,
                                std::span<const Change> changes);

/// "--set tp=4 --set dp=2"
std::string to_string(const Change& change);

}  // namespace rehearse
