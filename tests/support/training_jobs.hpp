// Trainings of many kinds on published machines, for tests that compare ways to predict them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/workload/model_presets.hpp"
#include "tests/support/random_program.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

struct TrainingJob {
  std::string name, machine;
  std::size_t nodes = 1;
  Workload model;
  Scenario scenario;

  Topology topology() const { return load_cluster(machine, {.nodes = nodes}); }
};

/// A preset with fewer blocks: as good a test, sooner done.
Workload shortened(std::string_view preset, std::size_t blocks);

/// Up to 64 ranks; every schedule, ZeRO stage, order and precision is in one of them.
std::vector<TrainingJob> training_jobs();

/// Strategies for a small model on 16 GPUs that come out even.
TrainingJob random_job(Draw& draw);

}  // namespace rehearse
