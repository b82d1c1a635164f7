// Counting over the ops of a finished run.
#include "strategies/servers/server_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace rehearse {

namespace {

double seconds(Time time) { return time.seconds().count(); }

class Counting {
 public:
  Counting(const ServerPlan& plan, const ServerProgram& lowered, const Timeline& timeline)
      : plan_{plan}, lowered_{lowered}, timeline_{timeline} {}

  ServerReport run() {
    told_.makespan = timeline_.makespan;
    told_.window = Time::never();
    for (const auto& steps : lowered_.steps)
      told_.window = std::min(told_.window, end(steps.back().end));
    count_steps();
    count_staleness();
    count_load();
    const double window = seconds(told_.window);
    const auto taken = static_cast<double>(told_.gradients);
    told_.updates_per_second = taken / window;
    told_.samples_per_second = taken * plan_.samples / window;
    told_.tokens_per_second = taken * plan_.tokens / window;
    return std::move(told_);
  }

 private:
  Time begin(OpId id) const { return timeline_.spans[index(id)].begin; }
  Time end(OpId id) const { return timeline_.spans[index(id)].end; }
  bool counts(Time when) const { return when <= told_.window; }

  void count_steps() {
    std::vector<double> times;
    for (const auto& steps : lowered_.steps) {
      Time before;
      for (const ServerProgram::Step& step : steps) {
        if (counts(end(step.end))) times.push_back(seconds(end(step.end) - before));
        before = end(step.end);
      }
    }
    told_.step = spread_of(std::move(times));
  }

  // A gradient is taken in with the last of its parts. Versions are counted for each part.
  void count_staleness() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Time>> applied;  // by part
    std::vector<Time> taken(plan_.workers.size() * plan_.how.steps);
    for (const ServerProgram::Update& update : lowered_.updates) {
      std::vector<Time>& times = applied[{update.server, update.bucket}];
      times.push_back(end(update.apply));
      Time& last = taken[update.worker * plan_.how.steps + update.step];
      last = std::max(last, end(update.apply));
    }
    told_.gradients = static_cast<std::uint64_t>(
        std::count_if(taken.begin(), taken.end(), [&](Time time) { return counts(time); }));
    std::uint64_t versions = 0;
    for (auto& [part, times] : applied) {
      std::sort(times.begin(), times.end());
      times.erase(std::unique(times.begin(), times.end()), times.end());
      versions += static_cast<std::uint64_t>(
          std::upper_bound(times.begin(), times.end(), told_.window) - times.begin());
    }
    told_.versions = versions / std::max<std::size_t>(1, applied.size());
    std::vector<double> values;
    for (const ServerProgram::Update& update : lowered_.updates) {
      if (!counts(end(update.apply))) continue;
      const std::vector<Time>& times = applied[{update.server, update.bucket}];
      const auto known = update.read == no_op ? 0 : upto(times, end(update.read));
      const auto stale = static_cast<std::size_t>(upto(times, end(update.apply)) - known - 1);
      if (stale >= told_.stale.size()) told_.stale.resize(stale + 1);
      ++told_.stale[stale];
      values.push_back(static_cast<double>(stale));
    }
    told_.staleness = spread_of(std::move(values));
  }
  static std::ptrdiff_t upto(const std::vector<Time>& times, Time when) {
    return std::upper_bound(times.begin(), times.end(), when) - times.begin();
  }

  void count_load() {
    const Program& program = lowered_.program;
    std::vector<double> busy(plan_.servers.size()), waits;
    double computing = 0;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const Program::Op& op = program[id];
      if (op.kind != WorkKind::compute || begin(id) > told_.window) continue;
      const double time = seconds(std::min(end(id), told_.window) - begin(id));
      if (!is_queue(op.stream)) {
        computing += time;
        continue;
      }
      const auto server = std::find(plan_.servers.begin(), plan_.servers.end(), op.rank);
      busy[static_cast<std::size_t>(server - plan_.servers.begin())] += time;
      Time ready;
      for (const OpId input : program.after(id)) ready = std::max(ready, end(input));
      waits.push_back(seconds(begin(id) - ready));
    }
    const double window = seconds(told_.window);
    const auto servers = static_cast<double>(lowered_.servers);
    told_.busy = std::accumulate(busy.begin(), busy.end(), 0.0) / servers / window;
    told_.busiest = *std::max_element(busy.begin(), busy.end()) / window;
    told_.queue_length = std::accumulate(waits.begin(), waits.end(), 0.0) / servers / window;
    told_.computing = computing / static_cast<double>(plan_.workers.size()) / window;
    told_.wait = spread_of(std::move(waits));
  }

  const ServerPlan& plan_;
  const ServerProgram& lowered_;
  const Timeline& timeline_;
  ServerReport told_;
};

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto at = [&](double share) {
    const auto place = static_cast<std::size_t>(std::ceil(share * count));
    return values[std::max<std::size_t>(place, 1) - 1];
  };
  return {.mean = std::accumulate(values.begin(), values.end(), 0.0) / count,
          .least = values.front(),
          .p50 = at(0.5),
          .p90 = at(0.9),
          .most = values.back(),
          .count = values.size()};
}

ServerReport report_servers(const ServerPlan& plan, const ServerProgram& lowered,
                            const Timeline& timeline) {
  return Counting(plan, lowered, timeline).run();
}

}  // namespace rehearse
