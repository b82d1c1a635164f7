// Counts who crosses what, stage by stage.
#include "strategies/collectives/pace.hpp"

#include <limits>

namespace rehearse {

namespace {

void pace_stage(Pattern& pattern, Paths& paths, const Topology& topology,
                std::span<const std::uint32_t> hops, std::vector<std::uint32_t>& crossed) {
  for (const std::uint32_t h : hops)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h)))
      ++crossed[index(crossing.link)];
  for (const std::uint32_t h : hops) {
    double share = std::numeric_limits<double>::infinity();
    bool shares_a_link = false;
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h))) {
      const std::uint32_t count = crossed[index(crossing.link)];
      shares_a_link = shares_a_link || count > 1;
      share = std::min(share, topology[crossing.link].bandwidth.count() / count);
    }
    if (!shares_a_link) continue;
    pattern.hops[h].connection.limit = BytesPerSecond{share};
    paths.limit(static_cast<ConnectionId>(h), BytesPerSecond{share});
  }
  for (const std::uint32_t h : hops)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(h)))
      crossed[index(crossing.link)] = 0;
}

}  // namespace

void pace(Pattern& pattern, Paths& paths, const Topology& topology) {
  std::vector<std::vector<std::uint32_t>> stages;
  for (std::uint32_t h = 0; h < pattern.hops.size(); ++h) {
    const std::size_t stage = pattern.hops[h].stage;
    if (stage >= stages.size()) stages.resize(stage + 1);
    stages[stage].push_back(h);
  }
  std::vector<std::uint32_t> crossed(topology.links().size());
  for (const auto& hops : stages) pace_stage(pattern, paths, topology, hops, crossed);
}

}  // namespace rehearse
