// Learning rates that are usual for each optimizer.
#include "strategies/binding/training_numbers.hpp"

namespace rehearse {

TrainingNumbers default_numbers(const Scenario& scenario) {
  TrainingNumbers numbers;
  numbers.seed = scenario.training.data_seed;
  numbers.loss_scale = scenario.training.initial_loss_scale;
  switch (scenario.training.optimizer) {
    case OptimizerKind::sgd:
      numbers.learning_rate = 0.1;
      break;
    case OptimizerKind::momentum:
      numbers.learning_rate = 0.05;
      break;
    case OptimizerKind::adam:
      numbers.learning_rate = 0.003;
      break;
    case OptimizerKind::lars:
      numbers.learning_rate = 5;  // times the trust of 0.001
      break;
    case OptimizerKind::lamb:
      numbers.learning_rate = 0.01;
      break;
  }
  if (scenario.training.learning_rate > 0) numbers.learning_rate = scenario.training.learning_rate;
  return numbers;
}

}  // namespace rehearse
