// Answers in words, from what the Timeline remembers.
#include "sim/engine/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace rehearse {

namespace {

struct Unit {
  double size;
  std::string_view name;
};

template <std::size_t N>
std::string with_unit(double value, const std::array<Unit, N>& units) {
  const Unit* unit = &units.front();
  for (const Unit& candidate : units)
    if (value >= candidate.size) unit = &candidate;
  return fmt::format("{:.4g} {}", value / unit->size, unit->name);
}

Time took(const Timeline& timeline, OpId id) {
  return timeline.spans[index(id)].end - timeline.spans[index(id)].begin;
}

double percent(Time part, Time whole) {
  return whole == Time{} ? 0 : 100 * part.seconds().count() / whole.seconds().count();
}

std::string explain_transfer(const Program& program, const Paths& paths, const Topology& topology,
                             const Transfer& work) {
  const ConnectionId connection = work.connection;
  std::string text =
      fmt::format("  moves {} ({} on the wire) over", readable(work.size), readable(work.wire));
  if (paths.crossings(connection).empty()) text += " no link";
  LinkId narrowest = no_link;
  double least = 0;
  for (const Paths::Crossing& crossing : paths.crossings(connection)) {
    text += fmt::format(" [{}]", link_name(topology, crossing.link));
    const double rate = topology[crossing.link].bandwidth.count() / crossing.weight;
    if (narrowest == no_link || rate < least) least = rate, narrowest = crossing.link;
  }
  const Connection& way = program[connection];
  const std::string latency = fmt::format("{} of latency{}", readable(paths.latency(connection)),
                                          way.posted ? ", in which its stream is free" : "");
  if (work.wire == Bytes{0}) return text + fmt::format("\n  alone: {}\n", latency);
  const BytesPerSecond rate = paths.rate_alone(connection);
  const std::string bytes =
      fmt::format("{} at {}, the {}", readable(Time::round(work.wire / rate)), readable(rate),
                  narrowest == no_link || rate.count() < least
                      ? fmt::format("limit of protocol '{}'", protocol_of(program, way).name)
                      : fmt::format("rate of {}", link_name(topology, narrowest)));
  const std::string gaps =
      paths.bursts(connection) == 1
          ? ""
          : fmt::format(" in {} bursts, {} between two", paths.bursts(connection),
                        readable(paths.gap(connection)));
  return text + fmt::format("\n  alone: {}, then {}{}\n", way.posted ? bytes : latency,
                            way.posted ? latency : bytes, gaps);
}

const Timeline::Contention* contention_of(const Timeline& timeline, OpId id) {
  const auto at = std::lower_bound(
      timeline.contentions.begin(), timeline.contentions.end(), id,
      [](const Timeline::Contention& contention, OpId op) { return contention.op < op; });
  return at == timeline.contentions.end() || at->op != id ? nullptr : &*at;
}

// Ops of one label and kind that follow one another on the critical path.
struct Run {
  std::uint32_t name = 0;
  WorkKind kind{};
  std::size_t count = 0;
  Time time, lost;
  Rank lowest{}, highest{};
};

std::vector<Run> runs_of(const Program& program, const Timeline& timeline) {
  std::vector<Run> runs;
  const std::vector<OpId> path = critical_path(timeline);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const OpId id = path[i];
    const Program::Op& op = program[id];
    // Until the next one goes on, which is before the end of a transfer that is in flight.
    const Time until = i + 1 < path.size() ? timeline.spans[index(path[i + 1])].begin
                                           : timeline.spans[index(id)].end;
    if (runs.empty() || runs.back().name != op.label.name || runs.back().kind != op.kind)
      runs.push_back({op.label.name, op.kind, 0, {}, {}, op.rank, op.rank});
    Run& run = runs.back();
    ++run.count;
    run.time += until - timeline.spans[index(id)].begin;
    if (const Timeline::Contention* loss = contention_of(timeline, id)) run.lost += loss->lost;
    run.lowest = std::min(run.lowest, op.rank);
    run.highest = std::max(run.highest, op.rank);
  }
  return runs;
}

}  // namespace

std::string readable(Time time) {
  static constexpr std::array<Unit, 5> units{
      {{1e-12, "ps"}, {1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}}};
  return with_unit(time.seconds().count(), units);
}

std::string readable(Bytes bytes) {
  static constexpr std::array<Unit, 5> units{
      {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}}};
  return with_unit(static_cast<double>(bytes.count()), units);
}

std::string readable(BytesPerSecond rate) {
  static constexpr std::array<Unit, 4> units{
      {{1, "B/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}};
  return with_unit(rate.count(), units);
}

std::string link_name(const Topology& topology, LinkId link) {
  return fmt::format("{} -> {}", topology[topology[link].source].name,
                     topology[topology[link].target].name);
}

std::string explain_op(const Program& program, const Timeline& timeline, const Paths& paths,
                       const Topology& topology, OpId id) {
  const Timeline::Span& span = timeline.spans.at(index(id));
  const Program::Op& op = program[id];
  std::string text =
      fmt::format("{}: from {} to {}, {}\n", program.describe(id), readable(span.begin),
                  readable(span.end), readable(took(timeline, id)));
  if (span.blocker == no_op) {
    text += "  waited for nothing\n";
  } else {
    const bool by_input = wait_of(program, timeline, id) == Wait::input;
    text += fmt::format("  waited {} for {}: {}\n", readable(span.begin),
                        by_input ? "its input" : "its stream", program.describe(span.blocker));
  }
  if (op.kind == WorkKind::transfer)
    text += explain_transfer(program, paths, topology, program.transfer(op));
  if (const Timeline::Contention* loss = contention_of(timeline, id)) {
    text += fmt::format("  lost {} by sharing", readable(loss->lost));
    if (loss->link != no_link) text += ", held last by " + link_name(topology, loss->link);
    text += "\n";
  }
  return text;
}

std::string explain_critical_path(const Program& program, const Timeline& timeline,
                                  std::size_t most) {
  std::vector<Run> runs = runs_of(program, timeline);
  std::size_t ops = 0;
  for (const Run& run : runs) ops += run.count;
  std::string text = fmt::format("critical path: {}, {} op{}\n", readable(timeline.makespan), ops,
                                 ops == 1 ? "" : "s");
  // With too many runs the longest are told, in their order; the rest is one line.
  std::vector<Time> times;
  for (const Run& run : runs) times.push_back(run.time);
  std::sort(times.begin(), times.end(), std::greater<>{});
  const Time least = runs.size() > most ? times[most - 1] : Time{};
  std::size_t told = 0, left = 0;
  Time rest;
  for (const Run& run : runs) {
    if (run.time < least || told == most) {
      ++left;
      rest += run.time;
      continue;
    }
    ++told;
    const std::string name =
        run.name < program.names().size() ? program.names()[run.name] : "unnamed";
    const std::string where =
        run.lowest == run.highest
            ? fmt::format("rank {}", index(run.lowest))
            : fmt::format("ranks {} to {}", index(run.lowest), index(run.highest));
    text += fmt::format("  {} × {} on {}: {} ({:.1f} %)", run.count, name, where,
                        readable(run.time), percent(run.time, timeline.makespan));
    if (run.lost > Time{}) text += fmt::format(", {} of it lost by sharing", readable(run.lost));
    text += '\n';
  }
  if (left > 0)
    text += fmt::format("  and {} shorter stretches: {} ({:.1f} %)\n", left, readable(rest),
                        percent(rest, timeline.makespan));
  return text;
}

std::string explain_links(const Timeline& timeline, const Topology& topology, std::size_t most) {
  const double seconds = timeline.makespan.seconds().count();
  struct Load {
    LinkId link{};
    double share = 0;
  };
  std::vector<Load> loads;
  for (std::size_t l = 0; l < timeline.link_bytes.size(); ++l) {
    const auto link = static_cast<LinkId>(l);
    const double bytes = static_cast<double>(timeline.link_bytes[l].count());
    if (bytes > 0 && seconds > 0)
      loads.push_back({link, bytes / (topology[link].bandwidth.count() * seconds)});
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.share > b.share; });
  std::string text = fmt::format("busiest links, of {} in use:\n", loads.size());
  for (std::size_t i = 0; i < std::min(most, loads.size()); ++i) {
    const LinkId link = loads[i].link;
    text += fmt::format("  {:5.1f} % of {}  {}  ({})\n", 100 * loads[i].share,
                        readable(topology[link].bandwidth), link_name(topology, link),
                        readable(timeline.link_bytes[index(link)]));
  }
  return text;
}

}  // namespace rehearse
