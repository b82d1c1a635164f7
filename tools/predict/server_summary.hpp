// What `rehearse predict` tells of a run with parameter servers.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/server_run.hpp"
#include "tools/predict/training_cost.hpp"

namespace rehearse {

struct ServerTold {
  const LoadedScenario& loaded;
  const ServerAnswer& answer;
  std::optional<TrainingCost> cost;
  std::string engine = "fast";
  std::optional<Time> reference;  // when the run ends in another engine, if one was asked
  double wall = 0;
};

/// For people.
std::string server_summary(const ServerTold& told);
/// For scripts; keys in a fixed order.
std::string server_json(const ServerTold& told);
/// A row for each worker.
std::string workers_csv(const ServerAnswer& answer);

}  // namespace rehearse
