// Hosts of one GPU each around a switch, and small models that train on them with parameter
// servers.
#pragma once

#include <string>

#include "sim/engine/cost_model.hpp"
#include "strategies/predict/server_run.hpp"
#include "tests/support/training.hpp"

namespace rehearse {

/// The first `slow` hosts have a device of a third of the rate.
inline Topology hosts(std::size_t count, Cable cable, std::size_t slow = 0) {
  Topology machine;
  machine.name = "hosts";
  for (const double rate : {3e13, 1e13})
    machine.accelerators.push_back({.name = rate > 2e13 ? "quick" : "slow",
                                    .memory_bandwidth = BytesPerSecond{rate / 30},
                                    .peaks = {{"bf16", FlopsPerSecond{rate}}},
                                    .communication_share = 0});
  for (std::size_t i = 0; i < count; ++i)
    machine.add({.name = "host" + std::to_string(i),
                 .kind = DeviceKind::gpu,
                 .node = static_cast<NodeId>(i),
                 .accelerator = static_cast<std::uint16_t>(i < slow ? 1 : 0)});
  const DeviceId hub = machine.add({.name = "switch", .kind = DeviceKind::network_switch});
  for (std::size_t i = 0; i < count; ++i)
    machine.connect_both({.source = static_cast<DeviceId>(i),
                          .target = hub,
                          .bandwidth = cable.bandwidth,
                          .latency = cable.latency,
                          .kind = LinkKind::network});
  return machine;
}

inline const EqualLayers served_model{.count = 6, .width = 256, .samples = 4096};

inline Scenario served(const ParameterServer& how) {
  Scenario scenario = served_model.scenario(1);
  scenario.parallelism.bucket_size = served_model.weights();
  scenario.parameter_server = how;
  return scenario;
}

inline ServerAnswer serve(const Scenario& scenario, const Topology& machine, bool fold = true) {
  return predict_servers(scenario, served_model.workload(), machine, Roofline{}, fold);
}

}  // namespace rehearse
