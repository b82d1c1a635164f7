// From a scenario with parameter servers to what it predicts: plan, program, engine, report.
#pragma once

#include "strategies/predict/prediction.hpp"
#include "strategies/servers/server_report.hpp"

namespace rehearse {

struct ServerAnswer {
  ServerPlan plan;
  ServerProgram lowered;
  Timeline timeline;
  ServerReport report;
  /// The same figures as for other strategies, for sweeps and scripts. A step is one of all workers
  /// at the rate at which samples are used: as long as W updates take in the mean.
  Prediction prediction;
};

/// Throws InputError for what makes no sense. With `fold`, servers that are alike are one.
ServerAnswer predict_servers(const Scenario& scenario, const Workload& workload,
                             const Topology& topology, const CostModel& cost, bool fold);

}  // namespace rehearse
