// An asynchronous run with parameter servers, where the servers' network is full all the time and
// hundreds of pushes and pulls share it: 256 workers, 16 servers, 1,000 updates of each.
#include <benchmark/benchmark.h>

#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "strategies/predict/server_run.hpp"

namespace rehearse {
namespace {

constexpr const char* served = R"(schema = 1
[model]
preset = "resnet-50"
[cluster]
name = "dgx-1"
nodes = 272
gpus_per_node = 1
fabric = { kind = "star", bandwidth = "25Gbps", latency = "5us" }
[training]
micro_batch_size = 32
dtype = "fp16"
optimizer = "momentum"
[parameter_server]
servers = 16
server_mode = "asynchronous"
steps_per_worker = 1000
)";

void asynchronous_servers(benchmark::State& state) {
  const LoadedScenario loaded = parse_scenario(served, "served");
  const ShapedRoofline cost;
  std::size_t ops = 0;
  for (auto _ : state) {
    const ServerAnswer answer =
        predict_servers(loaded.scenario, loaded.workload, loaded.topology, cost, true);
    ops = answer.lowered.program.size();
    benchmark::DoNotOptimize(answer.report.updates_per_second);
  }
  state.counters["ops"] = static_cast<double>(ops);
}
BENCHMARK(asynchronous_servers)
    ->Name("parameter_server/256x16x1000")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1)
    ->Repetitions(3);

}  // namespace
}  // namespace rehearse
