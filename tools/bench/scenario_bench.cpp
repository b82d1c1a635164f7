// How fast a sweep can go from one point to the next: keys set on a scenario, ranks placed.
#include <benchmark/benchmark.h>

#include "sim/scenario/scenario_setting.hpp"
#include "strategies/placement/placement.hpp"

namespace rehearse {
namespace {

void set_keys(benchmark::State& state, const char* axis) {
  const std::vector<Setting> settings = parse_axis(axis);
  Scenario scenario;
  std::size_t next = 0;
  for (auto _ : state) {
    apply(settings[next], scenario);
    next = next + 1 == settings.size() ? 0 : next + 1;
    benchmark::DoNotOptimize(scenario);
  }
  state.SetItemsProcessed(state.iterations());
}

// What every point of a sweep needs besides: a copy to set its keys on, and its arithmetic.
void check_point(benchmark::State& state) {
  const Scenario base{.parallelism = {.tensor = 8, .pipeline = 16}};
  for (auto _ : state) {
    const Scenario point = base;
    benchmark::DoNotOptimize(place_ranks(point.parallelism, 1024));
  }
  state.SetItemsProcessed(state.iterations());
}

void group_ranks(benchmark::State& state, Dimension dimension) {
  const Placement placement = place_ranks({.tensor = 8, .pipeline = 16}, 16384);
  for (auto _ : state) benchmark::DoNotOptimize(placement.groups(dimension));
}

BENCHMARK_CAPTURE(set_keys, count, "tp=1,2,4,8")->Repetitions(3);
BENCHMARK_CAPTURE(set_keys, choice, "recompute_granularity=none,full")->Repetitions(3);
BENCHMARK_CAPTURE(set_keys, text, "schedule=GPipe,1F1B,ZBH1")->Repetitions(3);
BENCHMARK_CAPTURE(set_keys, bytes, "bucket_size=25MiB,100MiB")->Repetitions(3);
BENCHMARK(check_point)->Repetitions(3);
BENCHMARK_CAPTURE(group_ranks, tensor_16384, Dimension::tensor)->Repetitions(3);
BENCHMARK_CAPTURE(group_ranks, data_16384, Dimension::data)->Repetitions(3);

}  // namespace
}  // namespace rehearse
