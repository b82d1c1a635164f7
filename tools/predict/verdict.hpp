// What limits a step, in words, and what to try next: with the figures of what was tried.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario_file.hpp"
#include "tools/predict/neighbours.hpp"

namespace rehearse {

struct Verdict {
  std::vector<std::string> sentences;  // what limits the step, what does not fit
  std::vector<Neighbour> better;       // faster and fitting, or fitting at all; the best first
  std::size_t tried = 0;               // neighbours that came out even
  bool makes_it_fit = false;           // what `better` is for
};

/// Predicts neighbours unless `tries` is false.
Verdict judge(const LoadedScenario& loaded, const Prediction& prediction, StepPredictor& predictor,
              bool tries);

/// "--set micro_batch_size=2: 3.21 s (-9 %), 41.3 GiB"
std::string describe(const Neighbour& neighbour, const Prediction& prediction);

}  // namespace rehearse
