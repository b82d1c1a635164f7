// FastSimulator beside SimGrid, both measured in one run of one program: Google Benchmark's table,
// then the ratios. `rehearse_bench --benchmark_filter=fast` measures ours alone.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/simgrid/simgrid_simulator.hpp"
#include "tools/bench/cases.hpp"

namespace rehearse {
namespace {

constexpr std::array<std::size_t, 5> ring_sizes{64, 128, 256, 512, 1024};
constexpr std::size_t largest_ring = ring_sizes.back();

template <class Engine>
Timeline run_once(const BenchCase& workload) {
  Routing routing{workload.topology};
  const Roofline cost;
  return Engine{routing, cost}.run(workload.program);
}

/// The largest resident set of a child that makes the workload and runs it, in bytes.
template <class Engine, class Make>
double peak_memory(Make make) {
  const pid_t child = ::fork();
  if (child == 0) {
    run_once<Engine>(make());
    ::_exit(0);
  }
  rusage usage{};
  if (child == -1 || ::wait4(child, nullptr, 0, &usage) != child) return 0;
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

template <class Engine, class Make>
void measure(benchmark::State& state, Make make) {
  const BenchCase workload = make();
  std::uint64_t events = 0;
  for (auto _ : state) events += run_once<Engine>(workload).events;
  const auto transfers = static_cast<double>(workload.program.transfer_count());
  state.counters["transfers"] = transfers;
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["s/transfer"] = benchmark::Counter(
      transfers, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["peak_bytes"] = peak_memory<Engine>(make);
}

template <class Engine, class Make>
void add(const std::string& name, Make make, int repetitions, int iterations = 1) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [make](benchmark::State& state) { measure<Engine>(state, make); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime()
      ->Iterations(iterations)
      ->Repetitions(repetitions);
}

void add_all() {
  for (const std::size_t ranks : ring_sizes)
    add<FastSimulator>(
        fmt::format("ring_all_reduce/{}/fast", ranks), [ranks] { return ring_all_reduce(ranks); },
        5, static_cast<int>(largest_ring / ranks));
  add<SimGridSimulator>(
      fmt::format("ring_all_reduce/{}/simgrid", largest_ring),
      [] { return ring_all_reduce(largest_ring); }, 2);
  const auto shared_nics = [] { return all_to_all(8, 8); };
  add<FastSimulator>("all_to_all/64/fast", shared_nics, 5, 10);
  add<SimGridSimulator>("all_to_all/64/simgrid", shared_nics, 5);
}

/// Prints the medians, and remembers the best of each engine's repetitions for the closing table:
/// on a shared machine the best is what the engine can do, the mean is what the neighbours did.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> medians;
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") medians.push_back(run);
      if (run.run_type == Run::RT_Iteration) remember(run);
    }
    if (!medians.empty()) ConsoleReporter::ReportRuns(medians);
  }

  void print_ratios() const {
    fmt::print("\n{:24} {:>10} {:>12} {:>12} {:>8} {:>14} {:>22}\n", "workload", "transfers",
               "fast", "SimGrid", "ratio", "fast events/s", "memory fast / SimGrid");
    for (const std::string& workload :
         {fmt::format("ring_all_reduce/{}", largest_ring), std::string{"all_to_all/64"}}) {
      const std::string fast = workload + "/fast", simgrid = workload + "/simgrid";
      if (!seconds_.contains(fast) || !seconds_.contains(simgrid)) continue;
      fmt::print(
          "{:24} {:>10.0f} {:>10.4f} s {:>10.3f} s {:>7.1f}x {:>14.3g} {:>10.0f} / {:.0f} MiB\n",
          workload, counter(fast, "transfers"), seconds_.at(fast), seconds_.at(simgrid),
          seconds_.at(simgrid) / seconds_.at(fast), counter(fast, "events/s"),
          counter(fast, "peak_bytes") / (1 << 20), counter(simgrid, "peak_bytes") / (1 << 20));
    }
    print_growth();
  }

 private:
  void remember(const Run& run) {
    const std::string name = run.run_name.function_name;
    const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
    const auto [best, is_first] = seconds_.try_emplace(name, seconds);
    if (!is_first && best->second <= seconds) return;
    best->second = seconds;
    counters_[name] = run.counters;
  }

  double counter(const std::string& run, const std::string& name) const {
    return counters_.at(run).at(name).value;
  }

  void print_growth() const {
    double smallest = 0;
    fmt::print("\ncost per transfer of a ring all-reduce\n");
    for (const std::size_t ranks : ring_sizes) {
      const std::string run = fmt::format("ring_all_reduce/{}/fast", ranks);
      if (!seconds_.contains(run)) continue;
      const double each = seconds_.at(run) / counter(run, "transfers");
      if (smallest == 0) smallest = each;
      fmt::print("  {:5} ranks {:8.1f} ns {:6.2f}x\n", ranks, each * 1e9, each / smallest);
    }
  }

  std::map<std::string, double> seconds_;
  std::map<std::string, benchmark::UserCounters> counters_;
};

}  // namespace
}  // namespace rehearse

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  rehearse::add_all();
  rehearse::Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print_ratios();
}
