// Whole training steps: the two largest scenarios kernel by kernel, and strategies a second of a
// sweep on one thread.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "sim/engine/shaped_roofline.hpp"
#include "strategies/predict/predictor.hpp"
#include "tools/sweep/sweep_run.hpp"

namespace rehearse {
namespace {

constexpr const char* gpt3 = R"(schema = 1
[model]
preset = "gpt3-175b"
[cluster]
name = "dgx-a100"
nodes = 128
[parallelism]
tp = 8
pp = 16
[training]
micro_batch_size = 1
global_batch_size = 1536
)";

constexpr const char* llama = R"(schema = 1
[model]
preset = "llama-3-405b"
[cluster]
name = "dgx-h100"
nodes = 2048
[parallelism]
tp = 8
pp = 16
layers_per_stage = [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]
sequence_parallel = true
zero_stage = 1
overlap_grad_reduce = true
overlap_param_gather = true
[training]
micro_batch_size = 1
global_batch_size = 2048
seq_length = 8192
)";

std::size_t predict_once(const LoadedScenario& loaded) {
  const ShapedRoofline cost;
  StepPredictor predictor(loaded.topology, cost);
  return predictor.predict(loaded.scenario, loaded.workload, {}).step.program.size();
}

/// The largest resident set of a child that reads the scenario and predicts it, in bytes.
double peak_memory(const char* scenario) {
  const pid_t child = ::fork();
  if (child == 0) {
    predict_once(parse_scenario(scenario, "scenario"));
    ::_exit(0);
  }
  rusage usage{};
  if (child == -1 || ::wait4(child, nullptr, 0, &usage) != child) return 0;
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void predict(benchmark::State& state, const char* scenario) {
  const LoadedScenario loaded = parse_scenario(scenario, "scenario");
  std::size_t ops = 0;
  for (auto _ : state) ops = predict_once(loaded);
  state.counters["ops"] = static_cast<double>(ops);
  state.counters["ranks"] = static_cast<double>(loaded.topology.rank_count());
  state.counters["peak_MiB"] = peak_memory(scenario) / (1 << 20);
}
BENCHMARK_CAPTURE(predict, gpt3_175b_1024_gpus, gpt3)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1)
    ->Repetitions(5);
BENCHMARK_CAPTURE(predict, llama3_405b_16384_gpus, llama)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1)
    ->Repetitions(3);

// One thread from a cold start; points that do not come out even are not counted.
void sweep(benchmark::State& state) {
  const LoadedScenario loaded = parse_scenario(gpt3, "scenario");
  std::vector<Axis> axes;
  for (const char* const text :
       {"tp=1..8*2", "pp=4..32*2", "mbs=1,2,4", "recompute_granularity=none,selective,full",
        "sequence_parallel=false,true", "schedule=1F1B,ZBH1"})
    axes.push_back(parse_sweep_axis(text));
  std::size_t predicted = 0;
  for (auto _ : state)
    for (const SweepPoint& point : run_sweep({.loaded = loaded,
                                   .axes = axes,
                                   .threads = 1,
                                   .stop = [] { return false; },
                                   .progress = [](const SweepProgress&) {}}))
      predicted += point.status == SweepPoint::Status::predicted;
  state.counters["strategies"] =
      static_cast<double>(predicted) / static_cast<double>(state.iterations());
  state.counters["strategies/s"] =
      benchmark::Counter(static_cast<double>(predicted), benchmark::Counter::kIsRate);
}
BENCHMARK(sweep)
    ->Name("sweep/gpt3_175b_1024_gpus")
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1)
    ->Repetitions(3);

}  // namespace
}  // namespace rehearse
