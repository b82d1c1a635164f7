// Kernels are kept by what the cost model knows of them: a product by its shape, whatever is
// transposed, any other by its operations and bytes. Sizes that nobody measured get a line over
// bytes, in which each kernel counts with the time it takes in all the scenarios.
#include "tools/measure/host_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/measure/line_fit.hpp"

namespace rehearse {

Program without_messages(const Program& program) {
  Program made;
  for (const std::string& name : program.names()) made.name(name);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const Program::Op& op = program[id];
    if (op.kind == WorkKind::compute)
      made.add_compute(op.rank, op.stream, op.label, program.compute(op), program.after(id),
                       program.accesses(op), program.calls(op));
    else
      made.add_marker(op.rank, op.stream, op.label, program.after(id));
  }
  return made;
}

namespace {

// What servers do for workers is no kernel of the model's: it is priced as stretches of time.
LoadedScenario without_servers(LoadedScenario loaded) {
  loaded.scenario.parameter_server.servers = 0;
  return loaded;
}

}  // namespace

StepKernels::StepKernels(const HostRanks& ranks, LoadedScenario scenario,
                         std::function<bool()> stop)
    : loaded_{without_servers(std::move(scenario))},
      step_{host_step(loaded_, HostCompute::calls, default_numbers(loaded_.scenario))},
      kernels_{without_messages(step_.program)},
      memory_{ranks.memory(step_.program)},
      training_{*step_.bound,
                loaded_.workload,
                step_.numbers,
                ranks,
                memory_of_training(*step_.bound, ranks, memory_),
                [] {}},
      whole_{ranks.executor(step_.program, memory_, {.stop = stop})},
      alone_{ranks.executor(kernels_, memory_, {.stop = stop})} {
  training_.begin("");
  training_.fill_batch(0);
  kept_ = training_.kept();
  for (const Program::Op& op : kernels_.ops()) kind_of_.push_back(kind_of(op));
}

std::uint32_t StepKernels::kind_of(const Program::Op& op) {
  if (op.kind != WorkKind::compute || kernels_.calls(op).empty()) return no_kind;
  const std::span<const KernelCall> calls = kernels_.calls(op);
  // Strides and transposes are in the calls' sizes: what differs there is another kind.
  const auto found = std::ranges::find_if(kinds_, [&](const Kind& kind) {
    return kind.work == kernels_.compute(op) && std::ranges::equal(calls, kind.calls);
  });
  const auto number = static_cast<std::uint32_t>(found - kinds_.begin());
  if (found == kinds_.end())
    kinds_.push_back(
        {kernels_.names()[op.label.name], kernels_.compute(op), {calls.begin(), calls.end()}});
  kinds_[number].uses += 1.0 / static_cast<double>(loaded_.topology.rank_count());
  return number;
}

// The kernels alone would train on what nobody has added up: each round begins anew.
void StepKernels::round() {
  training_.put_back(kept_);
  whole_->run(step_.program);
  runs_.push_back(alone_->run(kernels_));
}

std::vector<StepKernels::Kind> StepKernels::kinds() const {
  ASSERT(!runs_.empty());
  std::vector<const Timeline*> order;
  for (const Timeline& run : runs_) order.push_back(&run);
  std::ranges::stable_sort(order, {}, [](const Timeline* run) { return run->makespan; });
  const std::size_t quarter = order.size() / 4;
  std::vector<Kind> told = kinds_;
  std::vector<std::size_t> counts(told.size());
  for (std::size_t r = quarter; r < order.size() - quarter; ++r)
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (kind_of_[i] == no_kind) continue;
      const Timeline::Span& span = order[r]->spans[i];
      told[kind_of_[i]].seconds += (span.end - span.begin).seconds().count();
      ++counts[kind_of_[i]];
    }
  for (std::size_t k = 0; k < told.size(); ++k)
    // A clock may show nothing at all of the shortest.
    told[k].seconds = std::max(told[k].seconds / static_cast<double>(counts[k]), 1e-9);
  return told;
}

namespace {

using Kinds = std::vector<StepKernels::Kind>;

Time time_of(double seconds) { return Time::round(Seconds{seconds}); }

// Those that the model cannot tell apart are one entry: their mean, as often as the steps use each.
void keep_kernels(const Kinds& all, Profile& profile, AcceleratorChanges& changes) {
  std::map<Accelerator::MeasuredGemm::Shape, std::pair<double, double>> shapes;  // seconds, uses
  for (const StepKernels::Kind& kind : all) {
    auto& [sum, uses] = shapes[measured_shape(kind.work)];
    sum += kind.uses * kind.seconds;
    uses += kind.uses;
  }
  for (const auto& [shape, sum] : shapes)
    if (shape.n > 0) changes.measured.push_back({shape, time_of(sum.first / sum.second)});
  for (const StepKernels::Kind& kind : all) {
    const auto& [sum, uses] = shapes[measured_shape(kind.work)];
    const Gemm& gemm = kind.work.gemm;
    profile.rows.push_back({gemm.m > 0
                                ? fmt::format("{} {}x{}x{}", kind.name, gemm.m, gemm.n, gemm.k)
                                : fmt::format("{} {} B", kind.name, kind.work.traffic.count()),
                            time_of(kind.seconds), time_of(sum / uses)});
  }
}

void fit_the_rest(const Kinds& all, const Accelerator& device, Profile& profile,
                  AcceleratorChanges& changes) {
  std::vector<Sample> samples;
  for (const StepKernels::Kind& kind : all)
    if (kind.work.gemm.m == 0 && kind.work.traffic.count() > 0)
      samples.push_back({fmt::format("{} {} B", kind.name, kind.work.traffic.count()),
                         static_cast<double>(kind.work.traffic.count()), kind.seconds,
                         kind.uses * kind.seconds});
  if (samples.size() < 2) return;
  const LineFit fit = fit_line(samples);
  const double rate = 1 / std::max(fit.slope, 1e-15);
  changes.memory_efficiency = std::clamp(rate / device.memory_bandwidth.count(), 0.001, 1.0);
  changes.launch_overhead = time_of(fit.intercept);
  changes.memory_ramp = Bytes{0};
  profile.note(
      "sizes of kernels that nobody measured, by {} others: {:.2f} GB/s a rank with all ranks at "
      "work, {:.2f} us each; {} outliers; median error {:.1f} %, worst {:.1f} %",
      samples.size(), rate * 1e-9, 1e6 * fit.intercept, fit.outliers, 100 * fit.median_error,
      100 * fit.worst_error);
}

}  // namespace

void add_kernels(const std::deque<StepKernels>& steps, const Accelerator& device, Profile& profile,
                 AcceleratorChanges& changes) {
  Kinds all;
  for (const StepKernels& step : steps)
    for (StepKernels::Kind& kind : step.kinds()) all.push_back(std::move(kind));
  keep_kernels(all, profile, changes);
  fit_the_rest(all, device, profile, changes);
}

}  // namespace rehearse
