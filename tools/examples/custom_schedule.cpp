// 1F1B with every gradient of weights put off to the end: how much quicker, and for how much
// memory?
//   custom_schedule scenarios/zero-bubble.toml
#include <fmt/format.h>

#include <fstream>

#include "sim/engine/explain.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "strategies/schedules/check_schedule.hpp"
#include "strategies/schedules/draw_schedule.hpp"
#include "strategies/schedules/schedule_csv.hpp"

using namespace rehearse;

Schedule weights_last(std::uint32_t ranks, std::uint32_t microbatches) {
  Schedule schedule{.stages = ranks, .microbatches = microbatches};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ScheduleRow row;
    const auto add = [&](ActionKind kind, std::uint32_t i) {
      row.push_back(Action{rank, kind, i});
    };
    const std::uint32_t ahead = std::min(microbatches, ranks - rank);
    for (std::uint32_t i = 0; i < ahead; ++i) add(ActionKind::forward, i);
    for (std::uint32_t i = 0; i < microbatches; ++i) {
      add(ActionKind::backward_input, i);
      if (ahead + i < microbatches) add(ActionKind::forward, ahead + i);
    }
    for (std::uint32_t i = 0; i < microbatches; ++i) add(ActionKind::backward_weight, i);
    schedule.ranks.push_back(row);
    schedule.rank_of.push_back(rank);
  }
  return schedule;
}

void predict(const std::string& file, const std::string& change) {
  const LoadedScenario loaded = ready_scenario(file, {{change}});
  const ShapedRoofline cost;
  const Prediction step =
      StepPredictor(loaded.topology, cost).quick(loaded.scenario, loaded.workload);
  fmt::print("{:<22} {:>8}, rank 0 holds {}\n", change, readable(step.step),
             readable(step.roles.front().peak_bytes));
}

int main(int argc, char** argv) try {
  if (argc != 2) throw InputError("usage: custom_schedule SCENARIO   (pp 4, 8 micro-batches)");
  const Schedule mine = weights_last(4, 8);
  check_schedule(mine);
  fmt::print("{}", draw_schedule(mine));
  std::ofstream("mine.csv") << write_schedule_csv(mine);  // PyTorch reads it, too
  for (const char* change : {"schedule=1F1B", "schedule=ZBH1", "schedule_csv=mine.csv"})
    predict(argv[1], change);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
