// The summary of a run with parameter servers, for people.
#include "tools/predict/server_summary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/explain.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/output/chart.hpp"
#include "tools/predict/predict_report.hpp"

namespace rehearse {

namespace {

std::string_view words_of(ServerMode mode) {
  constexpr std::string_view words[] = {"synchronous", "asynchronous", "bounded"};
  return words[static_cast<std::size_t>(mode)];
}

std::string in_milliseconds(const Spread& spread) {
  const auto ms = [](double seconds) { return grouped(seconds * 1e3, seconds < 0.1 ? 3 : 1); };
  return fmt::format("mean {}, p50 {}, p90 {}, max {}", ms(spread.mean), ms(spread.p50),
                     ms(spread.p90), ms(spread.most));
}

class ServerSummary {
 public:
  explicit ServerSummary(const ServerTold& told)
      : told_{told},
        scenario_{told.loaded.scenario},
        plan_{told.answer.plan},
        report_{told.answer.report} {}

  std::string text() {
    heading();
    figures();
    histogram();
    verdict();
    footer();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }
  void row(std::string_view name, const std::string& value) {
    put("| {} | {} |\n", padded(name, 36), padded(value, 55));
  }

  void heading() {
    const Topology& topology = told_.loaded.topology;
    const ParameterServer& how = plan_.how;
    if (!scenario_.title.empty()) put("{}\n", scenario_.title);
    if (!scenario_.question.empty()) put("{}\n", scenario_.question);
    if (!text_.empty()) put("\n");
    put("model    {}\n", describe(told_.loaded.workload));
    put("cluster  {}: {}, {}\n", topology.name,
        counted_noun(std::max<std::size_t>(topology.node_count(), 1), "node"),
        counted_noun(topology.rank_count(), "rank"));
    put("servers  {} {}, {}; {}\n", how.servers,
        how.placement == ServerPlacement::dedicated ? "on nodes of their own"
                                                    : "on devices of workers",
        how.sharding == ServerSharding::even ? "every tensor cut over all" : "whole layers on each",
        counted_noun(plan_.workers.size(), "worker"));
    std::string mode{words_of(how.mode)};
    if (how.staleness)
      mode += fmt::format(", at most {} ahead", counted_noun(*how.staleness, "step"));
    put("mode     {}; {}\n", mode,
        how.protocol == ServerProtocol::pipelined
            ? fmt::format("pipelined in {}", counted_noun(plan_.buckets.size(), "bucket"))
            : "request and response");
    put("batch    {} samples a worker and step; {}\n\n", grouped(plan_.samples, 0),
        to_string(scenario_.training.precision));
  }

  void figures() {
    row(fmt::format("prediction of {} a worker", counted_noun(plan_.how.steps, "step")), "");
    put("|{:-<38}|{:-<57}|\n", "", "");
    row("updates/s (gradients taken in)", grouped(report_.updates_per_second, 2));
    row("samples/s", grouped(report_.samples_per_second, 2));
    if (report_.tokens_per_second > 0) row("tokens/s", grouped(report_.tokens_per_second, 0));
    row("step of a worker (ms)", in_milliseconds(report_.step));
    row("a worker computes", fmt::format("{:.1f} % of its time", 100 * report_.computing));
    const Spread& stale = report_.staleness;
    row("staleness (versions)", fmt::format("mean {:.2f}, p50 {:.0f}, p90 {:.0f}, max {:.0f}",
                                            stale.mean, stale.p50, stale.p90, stale.most));
    row("a server is busy", fmt::format("{:.1f} % of the time, the busiest {:.1f} %",
                                        100 * report_.busy, 100 * report_.busiest));
    row("requests in its queue", fmt::format("{:.2f} in the mean", report_.queue_length));
    row("wait in the queue (ms)", in_milliseconds(report_.wait));
    for (const RoleReport& role : told_.answer.prediction.roles)
      row(fmt::format("memory of a {}", role.name),
          role.capacity == Bytes{0}
              ? fmt::format("{:.1f} GiB", gibibytes(role.peak_bytes))
              : fmt::format("{:.1f} of {:.1f} GiB, {}", gibibytes(role.peak_bytes),
                            gibibytes(role.capacity),
                            role.peak_bytes <= role.capacity ? "fits" : "DOES NOT FIT"));
  }

  // At most a dozen lines: 0, 1, 2 … where there are few, ranges of equal width elsewhere.
  void histogram() {
    if (report_.stale.size() <= 1) return;
    constexpr std::size_t most_lines = 12;
    const std::size_t width = (report_.stale.size() + most_lines - 1) / most_lines;
    std::vector<std::uint64_t> bins((report_.stale.size() + width - 1) / width);
    for (std::size_t i = 0; i < report_.stale.size(); ++i) bins[i / width] += report_.stale[i];
    const auto most = static_cast<double>(*std::max_element(bins.begin(), bins.end()));
    put("\nhow stale the updates are (versions between pull and push):\n");
    for (std::size_t b = 0; b < bins.size(); ++b) {
      const std::size_t first = b * width, last = std::min(first + width, report_.stale.size()) - 1;
      const std::string range =
          first == last ? fmt::to_string(first) : fmt::format("{} to {}", first, last);
      const std::string line = bar(static_cast<double>(bins[b]) / most, 48);
      put("  {:>14} {:>5.1f} %{}{}\n", range,
          100 * static_cast<double>(bins[b]) / static_cast<double>(report_.staleness.count),
          line.find_first_not_of(' ') == std::string::npos ? "" : " ", line);
    }
  }

  // Which of the three a run hangs on.
  void verdict() {
    put("\nverdict\n");
    if (report_.computing >= 0.8)
      put("  Workers compute most of the time: neither servers nor network hold them up.\n");
    else if (report_.busiest >= 0.8)
      put("  The busiest server works {:.0f} % of the time: more servers, or cheaper updates.\n",
          100 * report_.busiest);
    else
      put("  Workers wait for the network {:.0f} % of the time at most: {}.\n",
          100 * (1 - report_.computing), way_out());
  }
  std::string way_out() const {
    if (plan_.how.protocol == ServerProtocol::request_response)
      return "more servers, fewer bytes, or server_protocol pipelined";
    return "more servers or fewer bytes";
  }

  void footer() {
    if (told_.cost) {
      put("\nthe whole training: {} steps of all workers, {} days, {} GPU-hours\n",
          grouped(told_.cost->steps, 0), grouped(told_.cost->days, 2),
          grouped(told_.cost->gpu_hours, 0));
      put("{}", scaling_words(*told_.cost));
    }
    if (told_.reference)
      put("\nthe whole run takes {} ms; in {} {} ms\n",
          grouped(report_.makespan.seconds().count() * 1e3, 3), told_.engine,
          grouped(told_.reference->seconds().count() * 1e3, 3));
    put("\nscenario {}, seed none (nothing is random), rehearse {}, engine {}\n",
        fingerprint(scenario_), version(), told_.engine);
    put("{} ops simulated in {:.3f} s; calibration: {}\n",
        grouped(static_cast<std::int64_t>(told_.answer.lowered.program.size())), told_.wall,
        calibration_words(scenario_));
  }

  const ServerTold& told_;
  const Scenario& scenario_;
  const ServerPlan& plan_;
  const ServerReport& report_;
  std::string text_;
};

}  // namespace

std::string server_summary(const ServerTold& told) { return ServerSummary(told).text(); }

}  // namespace rehearse
