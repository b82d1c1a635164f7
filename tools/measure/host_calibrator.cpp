// Everything goes through the executor that will run the scenarios, so its own cost is in what is
// measured.
#include "tools/measure/host_calibrator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "kernels/math/gemm.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/explain.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "tools/measure/bench_host.hpp"
#include "tools/measure/host_calibration.hpp"

namespace rehearse {

namespace {

constexpr std::int64_t collectives_a_run = 3;
constexpr int first_rounds = 3;

void add_rows(const std::vector<Sample>& samples, std::string_view what, const LineFit& fit,
              Profile& profile) {
  for (const Sample& sample : samples)
    profile.rows.push_back({fmt::format("{} {}", what, sample.name), Time::round(Seconds{sample.y}),
                            Time::round(Seconds{fit.at(sample.x)})});
}

double rate_of(const LineFit& fit) { return 1 / std::max(fit.slope, 1e-15); }

// Each message costs its ends some time; where it carries as many bytes as pass in eight times
// that, the cost hides behind the bytes of the one before.
Bytes piece_of(const LinkMeasurement& measured) {
  const double worth = 8 * measured.per_message.seconds().count() * rate_of(measured.both_ways);
  return Bytes{static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp(worth, 256.0, 16'777'216.0))))};
}

}  // namespace

HostCalibrator::HostCalibrator(const HostRanks& ranks, What what, Progress& progress)
    : ranks_{ranks}, what_{std::move(what)}, progress_{progress}, trials_{ranks, what_.stop} {
  if (ranks_.are_processes() && ranks_.processes() != what_.topology.rank_count())
    throw InputError(fmt::format("mpirun started {} processes, and the machine has {} ranks",
                                 ranks_.processes(), what_.topology.rank_count()));
  add_links();
  add_kernels_or_memory();
  add_collectives();
}

void HostCalibrator::round() {
  progress_.show("calibrating");
  trials_.round();
  for (StepKernels& step : steps_) step.round();
}

Profile HostCalibrator::profile() const {
  Profile profile;
  profile.calibration.source =
      fmt::format("measured: {}; {}; {}", ranks_.describe(what_.topology.rank_count()),
                  describe_this_machine(), gemm_library());
  for (const LinkClass& link : links_) tell_link(link, profile);
  if (device() != nullptr) tell_device(profile);
  tell_collectives(profile);
  return profile;
}

// One pair of ranks for each kind of link that limits a way between two.
void HostCalibrator::add_links() {
  Routing routing(what_.topology);
  std::set<LinkKind> known;
  for (std::size_t r = 1; r < what_.topology.rank_count(); ++r) {
    const std::vector<LinkId> route = routing.route(what_.topology.device_of(Rank{0}),
                                                    what_.topology.device_of(static_cast<Rank>(r)));
    if (route.empty()) continue;
    const LinkId slowest = *std::min_element(route.begin(), route.end(), [&](LinkId a, LinkId b) {
      return what_.topology[a].bandwidth < what_.topology[b].bandwidth;
    });
    const Link& link = what_.topology[slowest];
    if (!known.insert(link.kind).second) continue;
    progress_.show(fmt::format("messages between rank 0 and rank {}", r));
    links_.push_back(
        {link, route.size(), LinkTrials(trials_, Rank{0}, static_cast<Rank>(r), what_.largest)});
  }
  for (int i = 0; i < first_rounds; ++i) trials_.round();
  for (LinkClass& link : links_) {
    const LinkMeasurement measured = link.trials.measured();
    link.piece = piece_of(measured);
    // As long as a product of 256x256x256 or so, whatever the link.
    message_ = Bytes{static_cast<std::int64_t>(
                         std::clamp(rate_of(measured.both_ways) * 1e-3, 4096.0, 1048576.0)) &
                     ~63};
  }
}

void HostCalibrator::add_kernels_or_memory() {
  const std::size_t all = what_.topology.rank_count();
  if (device() == nullptr) return;
  for (const LoadedScenario& scenario : what_.scenarios) {
    progress_.show(fmt::format("kernels of {}", scenario.file));
    steps_.emplace_back(ranks_, scenario, what_.stop);
  }
  if (steps_.empty())
    for (const Bytes traffic : {64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB})
      scales_.emplace_back(trials_, all, traffic);
  if (!links_.empty()) slowing_.emplace(trials_, Gemm{256, 256, 256, 1}, message_);
}

CollectiveShape HostCalibrator::all_reduce() const {
  CollectiveShape shape{.kind = CollectiveKind::all_reduce};
  for (std::size_t r = 0; r < what_.topology.rank_count(); ++r)
    shape.group.push_back(static_cast<Rank>(r));
  return shape;
}

void HostCalibrator::add_collectives() {
  progress_.show("collectives");
  Calibration pieces;
  for (const LinkClass& link : links_)
    pieces.links.push_back({.kind = link.link.kind, .piece = link.piece});
  const Topology machine = apply_known(pieces, what_.topology);
  Routing routing(machine);
  const CollectiveJob job{.ranks = ranks_, .routing = routing, .shape = all_reduce()};
  for (const std::string& name : runnable_algorithms(job.shape, what_.topology, {}))
    for (const Bytes size : {64_KiB, 1_MiB, what_.largest})
      collectives_.push_back(
          {name, size,
           trials_.add(collectives_in_a_row(job, name, size, collectives_a_run).program)});
}

void HostCalibrator::tell_link(const LinkClass& link, Profile& profile) const {
  const LinkMeasurement measured = link.trials.measured();
  const LineFit& fit = measured.both_ways;
  const double rate = rate_of(fit);
  const auto hops = static_cast<double>(link.hops);
  // Beyond what the machine's file says of its cables, it is the ends that take their time, as
  // much of it when the message goes a longer way.
  const double latency = std::min(fit.intercept / hops, link.link.latency.seconds().count());
  profile.calibration.links.push_back(
      {link.link.kind, rate / link.link.bandwidth.count(), Time::round(Seconds{latency}),
       Time::round(Seconds{fit.intercept - latency * hops}), link.piece});
  profile.note(
      "{} links: rank {} and rank {}, {} links apart, both directions at once: alpha {:.2f} us, "
      "beta {:.3f} GB/s (one way: {:.2f} us, {:.3f} GB/s); a message in a row {}; {} of {} sizes "
      "are outliers; median error {:.1f} %, worst {:.1f} %",
      to_string(link.link.kind), index(measured.source), index(measured.target), link.hops,
      1e6 * fit.intercept, rate * 1e-9, 1e6 * measured.one_way.intercept,
      1e-9 * rate_of(measured.one_way), readable(measured.per_message), fit.outliers,
      measured.samples.size(), 100 * fit.median_error, 100 * fit.worst_error);
  add_rows(measured.samples, "message", fit, profile);
  // The model shares a link fairly; here it is told how far off that is.
  add_rows(measured.crowded, "two messages at once", fit, profile);
}

const Accelerator* HostCalibrator::device() const {
  const Device& first = what_.topology[what_.topology.device_of(Rank{0})];
  return what_.kernels && first.accelerator < what_.topology.accelerators.size()
             ? &what_.topology.accelerators[first.accelerator]
             : nullptr;
}

void HostCalibrator::tell_device(Profile& profile) const {
  AcceleratorChanges changes;
  steps_.empty() ? tell_memory(profile, changes) : add_kernels(steps_, *device(), profile, changes);
  if (slowing_) {
    const Slowing slowing = slowing_->measured();
    changes.communication_share = slowing.compute;
    profile.note(
        "communication costs products beside it {:.0f} % of its own time alone; messages beside "
        "products lose {:.0f} % of their rate",
        100 * slowing.compute, 100 * slowing.communication);
  }
  profile.calibration.devices.push_back({device()->name, changes});
}

void HostCalibrator::tell_memory(Profile& profile, AcceleratorChanges& changes) const {
  std::vector<Sample> samples;
  for (const ScaleTrial& scale : scales_)
    samples.push_back({fmt::format("{} B", scale.traffic().count()),
                       static_cast<double>(scale.traffic().count()),
                       scale.measured().seconds().count()});
  const LineFit fit = fit_line(samples);
  changes.memory_efficiency = std::min(1.0, rate_of(fit) / device()->memory_bandwidth.count());
  changes.launch_overhead = Time::round(Seconds{fit.intercept});
  changes.memory_ramp = Bytes{0};
  profile.note(
      "memory-bound kernels: {:.2f} GB/s a rank with all ranks at work, {:.2f} us each; median "
      "error {:.1f} %, worst {:.1f} %",
      rate_of(fit) * 1e-9, 1e6 * fit.intercept, 100 * fit.median_error, 100 * fit.worst_error);
  add_rows(samples, "scale", fit, profile);
}

// What was fitted on pairs, held against whole collectives: the residuals that count.
void HostCalibrator::tell_collectives(Profile& profile) const {
  const Topology machine = apply_known(profile.calibration, what_.topology);
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  for (const CollectiveTrial& measured : collectives_) {
    CollectiveRehearsal rehearsal(algorithm(measured.algorithm), all_reduce(), routing,
                                  Detail::transfers);
    profile.rows.push_back(
        {fmt::format("{} all_reduce {} B", measured.algorithm, measured.size.count()),
         Time::round(Seconds{median_makespan(measured.trial) / collectives_a_run}),
         rehearsal.run(measured.size, engine).time});
  }
}

Profile calibrate_on_host(const HostCalibration& what) {
  const HostRanks ranks;
  Progress progress(what.quiet || !ranks.is_first());
  std::vector<LoadedScenario> scenarios;
  for (const std::string& file : what.scenarios) {
    scenarios.push_back(load_scenario(file));
    check_scenario(scenarios.back());
  }
  HostCalibrator calibrator(ranks, {what.topology, std::move(scenarios), what.largest}, progress);
  for (std::size_t i = 0; i < what.rounds; ++i) calibrator.round();
  progress.show("");
  return calibrator.profile();
}

}  // namespace rehearse
