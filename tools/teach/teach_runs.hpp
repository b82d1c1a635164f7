// What a lesson measures: quantities of its scenario's prediction, and of collectives on its
// machine, each run once and remembered.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/servers/server_report.hpp"
#include "tools/predict/training_cost.hpp"
#include "tools/teach/teach_amount.hpp"

namespace rehearse {

/// One scenario and what it predicts.
struct LessonRun {
  LoadedScenario loaded;
  Prediction told;
  std::optional<ServerReport> servers;  // of a run with parameter servers
  Time average;                         // of all steps, where they are not alike
  std::optional<TrainingCost> cost;
};

/// A predictor for each of the machines asked for last: what it remembers of their collectives
/// serves every run there, whatever else changes.
class Predictors {
 public:
  StepPredictor& on(const Topology& topology);

 private:
  struct One {
    explicit One(Topology machine) : topology{std::move(machine)}, predictor{topology, cost} {}
    Topology topology;
    ShapedRoofline cost;
    StepPredictor predictor;
  };
  std::vector<std::unique_ptr<One>> latest_;  // the last one asked for is the first
};

/// Loads, checks and predicts it as `rehearse predict` does. Throws InputError.
LessonRun run_lesson(std::string_view toml, const std::string& file,
                     const std::vector<std::string>& sets, Predictors& predictors);

class LessonRuns {
 public:
  /// `sets` change the scenario for all that is measured: "nodes=2". The predictors, if any are
  /// lent, must outlive it.
  LessonRuns(std::string toml, std::string file, std::vector<std::string> sets = {},
             Predictors* lent = nullptr);

  /// A quantity by its name; `with` changes the scenario for this one more: "nodes=1". Of a
  /// collective ("all_reduce_time") it may also say size=…, algorithm=… and message_protocol=…, of
  /// a path ("path_latency", "path_bandwidth") to=RANK. Throws InputError.
  Amount measure(std::string_view quantity, const std::vector<std::string>& with);

  const LessonRun& run(const std::vector<std::string>& with = {});

 private:
  std::string toml_, file_;
  std::vector<std::string> sets_;
  Predictors own_;
  Predictors* lent_;
  std::map<std::vector<std::string>, std::unique_ptr<LessonRun>> runs_;
};

/// The names of all quantities.
std::vector<std::string> lesson_quantities();

}  // namespace rehearse
