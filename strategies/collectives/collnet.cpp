// CollNet: rings inside nodes, and between them the fabric's switches add (SHARP). The levels are
// those of hierarchical.cpp, the topmost is the building block of in_switch.cpp:
//
//   T = RS_g(S) + switch_N(S/g) + AG_g(S)
#include <algorithm>

#include "strategies/collectives/hierarchical.hpp"

namespace rehearse {

namespace {

constexpr Hierarchy switches_over_rings{2, TopLevel::in_switch, LowLevels::ring};

CollectivePlan plan_collnet(const CollectiveShape& shape, Routing& routing) {
  return plan_hierarchical(shape, routing, switches_over_rings);
}

Refusal collnet_refusal(const CollectiveShape& shape, const Topology& topology) {
  if (const auto refusal = hierarchy_refusal(shape, topology, switches_over_rings)) return refusal;
  const auto devices = topology.devices();
  if (std::none_of(devices.begin(), devices.end(),
                   [](const Device& d) { return d.node == no_node && d.reduces; }))
    return "its fabric has no switch that reduces";
  return std::nullopt;
}

}  // namespace

Algorithm by_collnet() {
  return {"collnet", "rings inside nodes, the fabric's switches add (SHARP)", collnet_refusal,
          plan_collnet, true};
}

}  // namespace rehearse
