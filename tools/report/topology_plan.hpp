// Which devices of a machine a picture shows, each for itself or many as one, in which row, and the
// cables between them.
//
//   spine0  spine1  …            fabric, by distance from the nodes
//   leaf0   leaf1   12 more
//   nic0 nic1 …      │
//   cpu0   cpu1      │  the node
//   pcie0  pcie1     │
//   gpu0 gpu1 …      │           and "15 more nodes" as one box
//   nvswitch0        │
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace rehearse {

/// One box: a device, or several.
struct ShownDevice {
  std::string name;
  std::size_t count = 1;
  std::size_t row = 0;    // from the top
  NodeId node = no_node;  // of a shown node; the other nodes are one box of the fabric's side
  bool is_nodes = false;  // many whole nodes
};

struct ShownCable {
  std::size_t a = 0, b = 0;  // boxes, a < b
  std::size_t cables = 0;    // directions are counted together
  BytesPerSecond bandwidth;  // of one direction of one cable, the fastest of them
  double busiest = 0;        // share of the time, of any direction
  double bytes = 0;
  LinkKind kind{};
};

struct TopologyPlan {
  std::vector<ShownDevice> devices;  // by row, then from left to right
  std::vector<ShownCable> cables;
  std::size_t rows = 0;
};

/// How much of the time each link carries something at its full rate; empty where nobody knows.
std::vector<double> busy_shares(const Topology& topology, std::span<const Bytes> link_bytes,
                                Time whole);

TopologyPlan plan_topology(const Topology& topology, std::span<const Bytes> link_bytes,
                           std::span<const double> shares);

}  // namespace rehearse
