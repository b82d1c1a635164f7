// Sums the transfers on each link, change by change.
#include "tools/output/link_counters.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

std::vector<LinkId> busiest(const Program& program, const Timeline& timeline, const Paths& paths,
                            const std::vector<bool>& shown_ranks, std::size_t most) {
  std::vector<bool> crossed(timeline.link_bytes.size(), false);
  std::vector<bool> seen(paths.size(), false);
  for (const Program::Op& op : program.ops()) {
    if (op.kind != WorkKind::transfer || !shown_ranks[index(op.rank)]) continue;
    const ConnectionId connection = program.transfer(op).connection;
    if (seen[index(connection)]) continue;
    seen[index(connection)] = true;
    for (const Paths::Crossing& crossing : paths.crossings(connection))
      crossed[index(crossing.link)] = true;
  }
  std::vector<LinkId> links;
  for (std::size_t l = 0; l < crossed.size(); ++l)
    if (crossed[l] && timeline.link_bytes[l] > Bytes{0}) links.push_back(static_cast<LinkId>(l));
  std::stable_sort(links.begin(), links.end(), [&](LinkId a, LinkId b) {
    return timeline.link_bytes[index(a)] > timeline.link_bytes[index(b)];
  });
  if (links.size() > most) links.resize(most);
  return links;
}

// Whole kB/s: sums of integers come back to exactly zero.
constexpr double unit = 1e3;
struct Change {
  Time at;
  std::int64_t by = 0;
};

std::vector<LinkLoad::Step> steps_of(std::vector<Change>& changes) {
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at < b.at; });
  std::vector<LinkLoad::Step> steps;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    sum += changes[i].by;
    if (i + 1 < changes.size() && changes[i + 1].at == changes[i].at) continue;
    const BytesPerSecond rate{static_cast<double>(sum) * unit};
    if (steps.empty() || steps.back().rate != rate) steps.push_back({changes[i].at, rate});
  }
  return steps;
}

}  // namespace

std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline,
                                 const Paths& paths, const std::vector<bool>& shown_ranks,
                                 std::size_t most) {
  const std::vector<LinkId> links = busiest(program, timeline, paths, shown_ranks, most);
  constexpr std::size_t hidden = SIZE_MAX;
  std::vector<std::size_t> place(timeline.link_bytes.size(), hidden);
  for (std::size_t i = 0; i < links.size(); ++i) place[index(links[i])] = i;
  std::vector<std::vector<Change>> changes(links.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    if (op.kind != WorkKind::transfer) continue;
    const Transfer& transfer = program.transfer(op);
    const Time end = timeline.spans[i].end - paths.flight(transfer.connection);
    const Time begin = timeline.spans[i].begin + paths.lead(transfer.connection);
    if (transfer.wire == Bytes{0} || begin >= end) continue;
    const double rate = (transfer.wire / (end - begin).seconds()).count();
    for (const Paths::Crossing& crossing : paths.crossings(transfer.connection)) {
      const std::size_t at = place[index(crossing.link)];
      if (at == hidden) continue;
      const std::int64_t by = std::llround(rate * crossing.weight / unit);
      changes[at].push_back({begin, by});
      changes[at].push_back({end, -by});
    }
  }
  std::vector<LinkLoad> loads;
  for (std::size_t i = 0; i < links.size(); ++i) loads.push_back({links[i], steps_of(changes[i])});
  return loads;
}

}  // namespace rehearse
