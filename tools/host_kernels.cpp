// Kernels are kept by what the cost model knows of them: a product by its shape, whatever is
// transposed, any other by its operations and bytes. Sizes that nobody measured get a line over
// bytes, in which each kernel counts with the time it takes in all the scenarios.
#include "tools/host_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/shaped_roofline.hpp"
#include "strategies/check_scenario.hpp"
#include "strategies/numbers/bind.hpp"

namespace rehearse {

namespace {

struct OpClass {
  std::string name;
  Compute work;
  std::vector<KernelCall> calls;
  double uses = 0;  // in a step, the mean over ranks, added up over scenarios
  KernelMeasurement measured;
};

Content content_of(const BoundStep& bound, Rank rank, const Slice& slice) {
  for (const auto& [owner, state] : bound.states)
    if (owner == rank && state == slice) return Content::state;
  for (const Feed& feed : bound.feeds)
    if (feed.rank == rank && feed.slice.buffer == slice.buffer && feed.kind != FeedKind::vectors)
      return Content::indices;
  return Content::numbers;
}

class Kernels {
 public:
  Kernels(const HostRanks& ranks, const Topology& topology, Progress& progress)
      : ranks_{ranks}, topology_{topology}, progress_{progress} {}

  void add(const std::string& file) {
    LoadedScenario loaded = load_scenario(file, {});
    check_scenario(loaded);
    const BoundStep bound = bound_step_of(loaded.scenario, loaded.workload, loaded.topology,
                                          ShapedRoofline{}, default_numbers(loaded.scenario));
    const Program& program = bound.step.program;
    for (const Program::Op& op : program.ops()) {
      if (op.kind != WorkKind::compute || program.calls(op).empty()) continue;
      OpClass& found = find(bound, op);
      found.uses += 1.0 / static_cast<double>(topology_.rank_count());
    }
  }

  const std::vector<OpClass>& all() const { return all_; }

 private:
  // Strides and transposes are in the calls' sizes: what differs there is another op.
  OpClass& find(const BoundStep& bound, const Program::Op& op) {
    const Program& program = bound.step.program;
    const std::span<const KernelCall> calls = program.calls(op);
    for (OpClass& known : all_)
      if (known.work == program.compute(op) &&
          std::equal(calls.begin(), calls.end(), known.calls.begin(), known.calls.end()))
        return known;
    OpClass& made = all_.emplace_back();
    made.name = program.names()[op.label.name];
    made.work = program.compute(op);
    made.calls.assign(calls.begin(), calls.end());
    progress_.show(fmt::format("kernel {} of {} bytes", made.name, made.work.traffic.count()));
    made.measured =
        measure_op(ranks_, topology_.rank_count(), program, op,
                   [&](const Slice& slice) { return content_of(bound, op.rank, slice); });
    return made;
  }

  const HostRanks& ranks_;
  const Topology& topology_;
  Progress& progress_;
  std::vector<OpClass> all_;
};

double seconds(const OpClass& op) { return op.measured.time.seconds().count(); }

// Ops that the model cannot tell apart are one entry: their mean, as often as the scenarios use
// each.
void keep_kernels(const std::vector<OpClass>& all, Profile& profile, AcceleratorChanges& changes) {
  std::map<Accelerator::MeasuredGemm::Shape, std::pair<double, double>> shapes;  // seconds, uses
  for (const OpClass& op : all) {
    auto& [sum, uses] = shapes[measured_shape(op.work)];
    sum += op.uses * seconds(op);
    uses += op.uses;
  }
  for (const auto& [shape, sum] : shapes)
    if (shape.n > 0)
      changes.measured.push_back({shape, Time::round(Seconds{sum.first / sum.second})});
  for (const OpClass& op : all) {
    const auto& [sum, uses] = shapes[measured_shape(op.work)];
    const Gemm& gemm = op.work.gemm;
    profile.rows.push_back({gemm.m > 0 ? fmt::format("{} {}x{}x{}", op.name, gemm.m, gemm.n, gemm.k)
                                       : fmt::format("{} {} B", op.name, op.work.traffic.count()),
                            op.measured.time, Time::round(Seconds{sum / uses})});
  }
}

void fit_the_rest(const std::vector<OpClass>& all, const Accelerator& device, Profile& profile,
                  AcceleratorChanges& changes) {
  std::vector<Sample> samples;
  for (const OpClass& op : all)
    if (op.work.gemm.m == 0 && op.work.traffic.count() > 0)
      samples.push_back({fmt::format("{} {} B", op.name, op.work.traffic.count()),
                         static_cast<double>(op.work.traffic.count()), seconds(op),
                         op.uses * seconds(op)});
  if (samples.size() < 2) return;
  const LineFit fit = fit_line(samples);
  const double rate = 1 / std::max(fit.slope, 1e-15);
  changes.memory_efficiency = std::clamp(rate / device.memory_bandwidth.count(), 0.001, 1.0);
  changes.launch_overhead = Time::round(Seconds{fit.intercept});
  changes.memory_ramp = Bytes{0};
  profile.notes.push_back(fmt::format(
      "sizes of kernels that nobody measured, by {} others: {:.2f} GB/s a rank with all ranks at "
      "work, {:.2f} us each; {} outliers; median error {:.1f} %, worst {:.1f} %",
      samples.size(), rate * 1e-9, 1e6 * fit.intercept, fit.outliers, 100 * fit.median_error,
      100 * fit.worst_error));
}

}  // namespace

void measure_scenario_kernels(const HostRanks& ranks, const std::vector<std::string>& files,
                              const Topology& topology, Progress& progress, Profile& profile,
                              AcceleratorChanges& changes) {
  Kernels kernels(ranks, topology, progress);
  for (const std::string& file : files) kernels.add(file);
  const Device& first = topology[topology.device_of(Rank{0})];
  keep_kernels(kernels.all(), profile, changes);
  fit_the_rest(kernels.all(), topology.accelerators[first.accelerator], profile, changes);
}

}  // namespace rehearse
