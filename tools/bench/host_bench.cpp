// What the host executor itself costs: ops that do nothing, in a row on one stream, handed from
// rank to rank, and fanned out.
#include <benchmark/benchmark.h>

#include <array>

#include "kernels/host/host_executor.hpp"

namespace rehearse {
namespace {

constexpr std::size_t op_count = 20'000;

/// Markers, each after the one before it, the next on the next of `ranks`.
Program relay(std::size_t ranks) {
  Program program;
  const Label label{program.name("marker")};
  OpId before = program.add_marker(Rank{0}, Stream::compute, label, {});
  while (program.size() < op_count)
    before = program.add_marker(static_cast<Rank>(program.size() % ranks), Stream::compute, label,
                                std::array{before});
  return program;
}

/// Markers of one rank, to and fro between two of its streams.
Program streams() {
  Program program;
  const Label label{program.name("marker")};
  OpId before = program.add_marker(Rank{0}, Stream::compute, label, {});
  while (program.size() < op_count)
    before = program.add_marker(Rank{0}, program.size() % 2 == 0 ? Stream::compute : Stream::comm,
                                label, std::array{before});
  return program;
}

/// Every rank's own row, and nothing between them.
Program rows(std::size_t ranks) {
  Program program;
  const Label label{program.name("marker")};
  while (program.size() < op_count)
    program.add_marker(static_cast<Rank>(program.size() % ranks), Stream::compute, label, {});
  return program;
}

void run(benchmark::State& state, const Program& program) {
  HostMemory memory(program);
  HostExecutor executor(memory);
  for (auto _ : state) {
    const Time time = executor.run(program).makespan;
    state.SetIterationTime(time.seconds().count());
  }
  state.counters["s/op"] = benchmark::Counter(
      static_cast<double>(program.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void host_row(benchmark::State& state) {
  run(state, rows(static_cast<std::size_t>(state.range(0))));
}
void host_relay(benchmark::State& state) {
  run(state, relay(static_cast<std::size_t>(state.range(0))));
}
void host_streams(benchmark::State& state) { run(state, streams()); }
BENCHMARK(host_row)->Arg(1)->Arg(2)->Arg(8)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(host_relay)->Arg(2)->Arg(8)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(host_streams)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse
