// A machine is made again with other links: Topology has no way to change one in place, on purpose.
#include "sim/scenario/scenario_machine.hpp"

#include <algorithm>
#include <set>

#include "topology/routing.hpp"

namespace rehearse {

namespace {

using Ends = std::pair<DeviceId, DeviceId>;

Ends ends_of(const Link& link) { return std::minmax(link.source, link.target); }

/// The cable by which a rank leaves its node; where it need not, all of its own.
std::set<Ends> cables_of(Rank rank, const Topology& topology, Routing& routing) {
  const DeviceId device = topology.device_of(rank);
  const NodeId home = topology[device].node;
  const auto away = std::find_if(topology.ranks().begin(), topology.ranks().end(),
                                 [&](DeviceId other) { return topology[other].node != home; });
  std::set<Ends> cables;
  if (away != topology.ranks().end()) {
    for (const LinkId link : routing.route(device, *away)) {
      if (topology[topology[link].target].node == home) continue;
      cables.insert(ends_of(topology[link]));
      return cables;
    }
  }
  for (const Link& link : topology.links())
    if (link.source == device || link.target == device) cables.insert(ends_of(link));
  return cables;
}

Topology with_slow_cables(const Topology& topology, const Imperfection& imperfection) {
  std::set<Ends> slow;
  Routing routing(topology);
  for (const std::size_t rank : imperfection.slow_cables)
    if (rank < topology.rank_count())
      slow.merge(cables_of(static_cast<Rank>(rank), topology, routing));
  Topology machine;
  machine.name = topology.name;
  machine.accelerators = topology.accelerators;
  machine.protocols = topology.protocols;
  machine.library = topology.library;
  for (const Device& device : topology.devices()) machine.add(device);
  for (Link link : topology.links()) {
    if (slow.contains(ends_of(link))) {
      link.bandwidth = link.bandwidth / imperfection.slow_cable_factor;
      link.latency += imperfection.slow_cable_latency;
      link.worn *= imperfection.slow_cable_factor;
      link.delay += imperfection.slow_cable_latency;
    }
    machine.connect(link);
  }
  return machine;
}

}  // namespace

Topology machine_for(const Scenario& scenario, Topology topology) {
  const Training& training = scenario.training;
  if (training.cuda_graph)
    for (Accelerator& device : topology.accelerators)
      device.launch_overhead = std::min(device.launch_overhead, training.graph_node_overhead);
  if (scenario.imperfection.slow_cables.empty()) return topology;
  return with_slow_cables(topology, scenario.imperfection);
}

}  // namespace rehearse
