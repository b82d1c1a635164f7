// A remembered collective knows what each of its groups puts on which link, as shares of its wire
// bytes; so its bytes are those shares, as often as it runs.
#include "strategies/lowering/traffic_count.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace rehearse {

namespace {

/// How often what runs: collectives by use and pipeline rank, messages by hand-over.
struct Counts {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> collectives;
  std::map<std::uint32_t, std::uint64_t> joint_collectives;  // by use
  std::map<std::uint32_t, Bytes> messages;                   // bytes of each rank
};

Counts counts_of(const StepProgram& step, std::size_t uses) {
  Counts counts;
  for (const Communication& what : step.communications) {
    if (what.traffic >= uses)
      counts.messages[static_cast<std::uint32_t>(what.traffic - uses)] += what.size;
    else if (what.is_joint)
      ++counts.joint_collectives[what.traffic];
    else
      ++counts.collectives[{what.traffic, what.pipeline_rank}];
  }
  return counts;
}

}  // namespace

std::vector<Bytes> link_bytes(const StepProgram& step, const StepPlan& plan, StepNetwork& network) {
  const Counts counts = counts_of(step, plan.uses.size());
  std::vector<double> bytes(network.topology().links().size());
  const auto times_of = [&](std::uint32_t use, const GroupFamily::Group& group) {
    const auto of = [](const auto& table, const auto& key) {
      const auto found = table.find(key);
      return found == table.end() ? 0 : found->second;
    };
    const auto place =
        static_cast<std::uint32_t>(network.placement().coordinates(group.front()).pipeline);
    return static_cast<double>(of(counts.joint_collectives, use) +
                               of(counts.collectives, std::pair{use, place}));
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
  const std::vector<StepNetwork::Handover> handovers = handovers_of(plan.schedule);
  for (const auto& [handover, size] : counts.messages)
    for (const Traffic::Message& message : network.messages(handovers[handover]))
      for (const LinkId link : message.links)
        bytes[index(link)] += static_cast<double>(size.count()) / payload;
  std::vector<Bytes> result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(),
                 [](double amount) { return Bytes{std::llround(amount)}; });
  return result;
}

}  // namespace rehearse
