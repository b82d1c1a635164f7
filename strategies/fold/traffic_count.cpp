// A remembered collective knows what each of its groups puts on which link, as shares of its wire
// bytes; so its bytes are those shares, as often as it runs.
#include "strategies/fold/traffic_count.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

std::uint32_t place_of(const Placement& placement, Rank rank) {
  return static_cast<std::uint32_t>(placement.coordinates(rank).pipeline);
}

}  // namespace

std::vector<Bytes> TrafficCount::on_links(const StepPlan& plan, StepNetwork& network) const {
  std::vector<double> bytes(network.topology().links().size());
  const auto times_of = [&](std::uint32_t use, const GroupFamily::Group& group) {
    std::uint64_t times = 0;
    if (const auto all = exchanges_of_all_.find(use); all != exchanges_of_all_.end())
      times += all->second;
    const auto here = exchanges_.find({use, place_of(network.placement(), group.front())});
    return static_cast<double>(times + (here == exchanges_.end() ? 0 : here->second));
  };
  for (std::uint32_t u = 0; u < plan.uses.size(); ++u) {
    const std::span<const GroupFamily::Group> groups = network.groups(plan.uses[u]);
    for (const GroupFamily::Use::Entry& entry : network.use(plan.uses[u]).entries) {
      const auto wire = static_cast<double>(entry.cost.wire.count());
      for (std::size_t g = 0; g < entry.alike->groups.size(); ++g) {
        const double times = times_of(u, groups[entry.alike->groups[g]]);
        if (times == 0) continue;
        for (const LoadedLink& load : entry.alike->loads[g])
          bytes[index(load.link)] += times * wire * load.share;
      }
    }
  }
  const double payload = message_protocol(network.topology()).payload;
  for (const auto& [handover, size] : messages_)
    for (const Traffic::Message& message : network.messages(handover))
      for (const LinkId link : message.links)
        bytes[index(link)] += static_cast<double>(size.count()) / payload;
  std::vector<Bytes> result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(),
                 [](double amount) { return Bytes{std::llround(amount)}; });
  return result;
}

}  // namespace rehearse
