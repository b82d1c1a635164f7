// Everything goes through the executor that will run the scenarios, so its own cost is in what is
// measured.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "kernels/gemm.hpp"
#include "sim/cost_model.hpp"
#include "sim/error.hpp"
#include "sim/explain.hpp"
#include "sim/fast_simulator.hpp"
#include "sim/shaped_roofline.hpp"
#include "strategies/check_scenario.hpp"
#include "strategies/predictor.hpp"
#include "tools/bench_host.hpp"
#include "tools/calibrate.hpp"
#include "tools/host_kernels.hpp"
#include "tools/measure_host.hpp"
#include "tools/progress.hpp"

namespace rehearse {

namespace {

class HostCalibrator {
 public:
  explicit HostCalibrator(const HostCalibration& what)
      : what_{what}, progress_{what.quiet || !ranks_.is_first()} {
    if (ranks_.are_processes() && ranks_.processes() != what.topology.rank_count())
      throw InputError(fmt::format("mpirun started {} processes, and the machine has {} ranks",
                                   ranks_.processes(), what.topology.rank_count()));
  }

  Profile run() {
    profile_.calibration.source =
        fmt::format("measured: {}; {}; {}", ranks_.describe(what_.topology.rank_count()),
                    describe_this_machine(), gemm_library());
    measure_links();
    measure_kernels();
    check_collectives();
    progress_.show("");
    return std::move(profile_);
  }

 private:
  // One pair of ranks for each kind of link that limits a way between two.
  void measure_links() {
    Routing routing(what_.topology);
    std::set<LinkKind> known;
    for (std::size_t r = 1; r < what_.topology.rank_count(); ++r) {
      const std::vector<LinkId> route = routing.route(
          what_.topology.device_of(Rank{0}), what_.topology.device_of(static_cast<Rank>(r)));
      if (route.empty()) continue;
      const LinkId slowest = *std::min_element(route.begin(), route.end(), [&](LinkId a, LinkId b) {
        return what_.topology[a].bandwidth < what_.topology[b].bandwidth;
      });
      const Link& link = what_.topology[slowest];
      if (!known.insert(link.kind).second) continue;
      progress_.show(fmt::format("messages between rank 0 and rank {}", r));
      add_link(measure_link(ranks_, Rank{0}, static_cast<Rank>(r), what_.largest), link,
               route.size());
    }
  }

  void add_link(const LinkMeasurement& measured, const Link& link, std::size_t hops) {
    const LineFit& fit = measured.both_ways;
    const double rate = 1 / std::max(fit.slope, 1e-15);
    // Beyond what the machine's file says of its cables, it is the ends that take their time, as
    // much of it when the message goes a longer way.
    const double latency =
        std::min(fit.intercept / static_cast<double>(hops), link.latency.seconds().count());
    const double overhead = fit.intercept - latency * static_cast<double>(hops);
    // As long as a product of 256x256x256 or so, whatever the link.
    message_ = Bytes{static_cast<std::int64_t>(std::clamp(rate * 1e-3, 4096.0, 1048576.0)) & ~63};
    // Each message costs its ends some time; where it carries as many bytes as pass in eight times
    // that, the cost hides behind the bytes of the one before.
    const double worth = 8 * measured.per_message.seconds().count() * rate;
    const Bytes piece{static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::clamp(worth, 256.0, 16'777'216.0))))};
    profile_.calibration.links.push_back({link.kind, rate / link.bandwidth.count(),
                                          Time::round(Seconds{latency}),
                                          Time::round(Seconds{overhead}), piece});
    profile_.note(
        "{} links: rank {} and rank {}, {} links apart, both directions at once: alpha {:.2f} us, "
        "beta {:.3f} GB/s (one way: {:.2f} us, {:.3f} GB/s); a message in a row {}; {} of {} sizes "
        "are outliers; median error {:.1f} %, worst {:.1f} %",
        to_string(link.kind), index(measured.source), index(measured.target), hops,
        1e6 * fit.intercept, rate * 1e-9, 1e6 * measured.one_way.intercept,
        1e-9 / std::max(measured.one_way.slope, 1e-15), readable(measured.per_message),
        fit.outliers, measured.samples.size(), 100 * fit.median_error, 100 * fit.worst_error);
    for (const Sample& sample : measured.samples)
      profile_.rows.push_back({fmt::format("message {}", sample.name),
                               Time::round(Seconds{sample.y}),
                               Time::round(Seconds{fit.at(sample.x)})});
    // The model shares a link fairly; here it is told how far off that is.
    for (const Sample& sample : measured.crowded)
      profile_.rows.push_back({fmt::format("two messages at once {}", sample.name),
                               Time::round(Seconds{sample.y}),
                               Time::round(Seconds{fit.at(sample.x)})});
  }

  void measure_kernels() {
    const Device& first = what_.topology[what_.topology.device_of(Rank{0})];
    if (first.accelerator >= what_.topology.accelerators.size()) return;
    const Accelerator& device = what_.topology.accelerators[first.accelerator];
    const std::size_t all = what_.topology.rank_count();
    AcceleratorChanges changes;
    if (what_.scenarios.empty()) measure_memory(device, all, changes);
    if (!what_.scenarios.empty())
      measure_scenario_kernels(ranks_, what_.scenarios, what_.topology, progress_, profile_,
                               changes);
    if (all >= 2) {
      progress_.show("products beside messages");
      const Slowing slowing = measure_slowing(ranks_, {256, 256, 256, 1}, message_);
      changes.communication_share = slowing.compute;
      profile_.note(
          "communication costs products beside it {:.0f} % of its own time alone; messages beside "
          "products lose {:.0f} % of their rate",
          100 * slowing.compute, 100 * slowing.communication);
    }
    profile_.calibration.devices.push_back({device.name, changes});
  }

  void measure_memory(const Accelerator& device, std::size_t all, AcceleratorChanges& changes) {
    std::vector<Sample> samples;
    for (const Bytes traffic : {64_KiB, 256_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB}) {
      progress_.show(fmt::format("memory, {} bytes", traffic.count()));
      const KernelMeasurement one = measure_scale(ranks_, all, traffic);
      samples.push_back({fmt::format("scale {} B", traffic.count()),
                         static_cast<double>(traffic.count()), one.time.seconds().count()});
    }
    const LineFit fit = fit_line(samples);
    const double rate = 1 / std::max(fit.slope, 1e-15);
    changes.memory_efficiency = std::min(1.0, rate / device.memory_bandwidth.count());
    changes.launch_overhead = Time::round(Seconds{fit.intercept});
    changes.memory_ramp = Bytes{0};
    profile_.note(
        "memory-bound kernels: {:.2f} GB/s a rank with all ranks at work, {:.2f} us each; median "
        "error {:.1f} %, worst {:.1f} %",
        rate * 1e-9, 1e6 * fit.intercept, 100 * fit.median_error, 100 * fit.worst_error);
    for (const Sample& sample : samples)
      profile_.rows.push_back(
          {sample.name, Time::round(Seconds{sample.y}), Time::round(Seconds{fit.at(sample.x)})});
  }

  // What was fitted on pairs, held against whole collectives: the residuals that count.
  void check_collectives() {
    const Topology machine = apply(profile_.calibration, what_.topology);
    Routing routing(machine);
    CollectiveShape shape{.kind = CollectiveKind::all_reduce};
    for (std::size_t r = 0; r < machine.rank_count(); ++r)
      shape.group.push_back(static_cast<Rank>(r));
    const CollectiveJob job{.ranks = ranks_, .routing = routing, .shape = shape, .iterations = 3};
    const Roofline cost;
    FastSimulator engine(routing, cost);
    for (const std::string& name : runnable_algorithms(shape, what_.topology, {}))
      for (const Bytes size : {64_KiB, 1_MiB, what_.largest}) {
        progress_.show(fmt::format("{} all_reduce, {} bytes", name, size.count()));
        const MeasuredCollective measured = measure(job, name, size);
        CollectiveRehearsal rehearsal(algorithm(name), shape, routing, Detail::transfers);
        profile_.rows.push_back({fmt::format("{} all_reduce {} B", name, size.count()),
                                 measured.first, rehearsal.run(size, engine).time});
      }
  }

  const HostCalibration& what_;
  HostRanks ranks_;
  Progress progress_;
  Profile profile_;
  Bytes message_ = 1_MiB;  // beside products
};

}  // namespace

Profile calibrate_on_host(const HostCalibration& what) { return HostCalibrator(what).run(); }

}  // namespace rehearse
