// The simulated curve of a collective is moved onto the measured one: its slope by the bandwidth of
// the links that limit it, its beginning by their latency. Both curves are lines fitted alike.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/collectives/choose.hpp"
#include "tools/calibrate/calibrate.hpp"
#include "tools/calibrate/nccl_log.hpp"
#include "tools/measure/line_fit.hpp"
#include "tools/output/progress.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

struct Simulated {
  std::vector<Sample> samples;
  LinkKind limiting{};  // at the largest size
};

Simulated simulate(const Topology& topology, CollectiveKind kind, const std::vector<Sample>& like) {
  Routing routing(topology);
  CollectiveShape shape{.kind = kind};
  for (std::size_t r = 0; r < topology.rank_count(); ++r)
    shape.group.push_back(static_cast<Rank>(r));
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveChooser chooser(shape, routing, {});
  Simulated made;
  double largest = -1;
  for (const Sample& sample : like) {
    const Bytes size{static_cast<std::int64_t>(sample.x)};
    const Candidate best = chooser.best(size, engine);
    made.samples.push_back({sample.name, sample.x, best.result.time.seconds().count()});
    if (sample.x <= largest) continue;
    largest = sample.x;
    const BusiestLink busiest = chooser.busiest(best, size);
    if (busiest.link != no_link) made.limiting = topology[busiest.link].kind;
  }
  return made;
}

std::vector<Sample> samples_of(const LogCalibration& what, std::string& versions) {
  std::vector<Sample> samples;
  for (const std::string& file : what.logs) {
    const NcclLog log = parse_nccl_log(read_text_file(file), file);
    if (!log.version.empty()) versions += (versions.empty() ? "" : "; ") + log.version;
    for (const NcclRow& row : log.rows)
      if (row.size > Bytes{0})
        samples.push_back({fmt::format("{} {} B", what.collective, row.size.count()),
                           static_cast<double>(row.size.count()), row.time.count()});
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.x < b.x; });
  if (samples.size() < 2 || samples.front().x == samples.back().x)
    throw InputError(what.logs.front() + ": a fit needs two sizes at least");
  return samples;
}

Time latency_of(const Topology& topology, LinkKind kind) {
  for (const Link& link : topology.links())
    if (link.kind == kind) return link.latency;
  return Time{};
}

}  // namespace

Profile calibrate_from_logs(const LogCalibration& what) {
  Progress progress(what.quiet);
  std::string versions;
  const CollectiveKind kind = collective_kind(what.collective);
  const std::vector<Sample> measured = samples_of(what, versions);
  const LineFit target = fit_line(measured);
  const LinkKind limiting = simulate(what.topology, kind, measured).limiting;
  const Time nominal = latency_of(what.topology, limiting);
  Profile profile;
  Calibration::LinkClass link{limiting, 1, nominal};
  std::vector<Sample> simulated;
  // Other links and the protocols have their part in both curves: a few rounds to settle.
  for (int round = 0; round < 6; ++round) {
    progress.show(fmt::format("fitting, round {}", round + 1));
    profile.calibration.links = {link};
    simulated = simulate(apply(profile.calibration, what.topology), kind, measured).samples;
    const LineFit now = fit_line(simulated);
    const double share = now.slope / std::max(target.slope, 1e-18);
    const double later = target.intercept / std::max(now.intercept, 1e-12);
    link.bandwidth_share = std::clamp(link.bandwidth_share * share, 1e-3, 100.0);
    const double latency = std::clamp(link.latency->seconds().count() * later, 1e-9, 0.9);
    link.latency = Time::round(Seconds{latency});
  }
  profile.calibration.source =
      fmt::format("{} of nccl-tests on {} ({})", what.collective, what.topology.name,
                  versions.empty() ? "version not in the log" : versions);
  profile.notes.push_back(fmt::format(
      "{} samples; line through them: {:.2f} us + size / {:.3f} GB/s, {} outliers, median error "
      "{:.1f} %",
      measured.size(), 1e6 * target.intercept, 1e-9 / std::max(target.slope, 1e-18),
      target.outliers, 100 * target.median_error));
  for (std::size_t i = 0; i < measured.size(); ++i)
    profile.rows.push_back({measured[i].name, Time::round(Seconds{measured[i].y}),
                            Time::round(Seconds{simulated[i].y})});
  return profile;
}

}  // namespace rehearse
