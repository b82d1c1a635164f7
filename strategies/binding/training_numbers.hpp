// The numbers of a training that its cost does not depend on: rates, seeds, the loss scale.
#pragma once

#include <cstdint>

#include "sim/scenario/scenario.hpp"

namespace rehearse {

/// What a training needs beyond what its cost depends on.
struct TrainingNumbers {
  std::uint64_t seed = 1;
  double learning_rate = 0.01;
  double momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double trust = 0.001;       // LARS
  double loss_scale = 65536;  // to begin with, where it is dynamic: PyTorch's GradScaler
  friend bool operator==(const TrainingNumbers&, const TrainingNumbers&) = default;
};

/// What the scenario says, or a learning rate that is usual for its optimizer, and the papers'
/// other numbers.
TrainingNumbers default_numbers(const Scenario& scenario);

}  // namespace rehearse
