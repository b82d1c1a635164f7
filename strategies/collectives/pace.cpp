// Counts who crosses what.
#include "strategies/collectives/pace.hpp"

#include <algorithm>
#include <limits>

#include "sim/paths.hpp"

namespace rehearse {

void pace(Pattern& pattern, Routing& routing, HopId first) {
  const Topology& topology = routing.topology();
  Program program;
  for (std::size_t h = index(first); h < pattern.hops.size(); ++h)
    program.connect(pattern.hops[h].connection);
  const Paths paths(program, routing);
  std::vector<std::uint32_t> crossed(topology.links().size());
  for (std::size_t c = 0; c < paths.size(); ++c)
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(c)))
      ++crossed[index(crossing.link)];
  for (std::size_t c = 0; c < paths.size(); ++c) {
    double share = std::numeric_limits<double>::infinity();
    bool shares_a_link = false;
    for (const Paths::Crossing& crossing : paths.crossings(static_cast<ConnectionId>(c))) {
      const std::uint32_t count = crossed[index(crossing.link)];
      shares_a_link = shares_a_link || count > 1;
      share = std::min(share, topology[crossing.link].bandwidth.count() / count);
    }
    if (shares_a_link) pattern.hops[index(first) + c].connection.limit = BytesPerSecond{share};
  }
}

}  // namespace rehearse
