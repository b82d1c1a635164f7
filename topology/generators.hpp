// Shapes of machines: values in, a Topology out. First one node (all its devices in node 0, named
// "gpu0", "nic1"), then many copies of it on a fabric ("node3/gpu0", "leaf2", "spine0").
#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "topology/topology.hpp"

namespace rehearse {

/// Each direction of a cable, with whatever the device at its far end adds to the latency.
struct Cable {
  BytesPerSecond bandwidth;
  Time latency;
};

/// More is refused before anything is allocated; ids and routing costs count on it.
inline constexpr std::size_t most_devices = std::size_t{1} << 20;
inline constexpr std::size_t most_links = std::size_t{1} << 22;

// --- GPUs and nothing else, for lessons and closed forms.

Topology ring(std::size_t gpus, Cable cable);
Topology fully_connected(std::size_t gpus, Cable cable);
/// All GPUs on one switch.
Topology star(std::size_t gpus, Cable cable, bool reduces = false);
/// `extent` GPUs along each of its dimensions, wrapped around; the first varies fastest.
Topology torus(std::span<const std::size_t> extent, Cable cable);

// --- One server.

/// How the GPUs of a server reach each other without its host.
enum class Mesh : std::uint8_t {
  none,              // through PCIe only
  nvswitch,          // each on one big switch
  groups,            // every pair within a group of `group` GPUs (xGMI boxes: all; Summit: 3)
  hybrid_cube_mesh,  // DGX-1: 8 GPUs, 6 links each
};

/// A host tree, and a mesh between the GPUs beside it:
///
///   memory ── cpu ══ cpu ── memory        `socket` between sockets, `memory` beside them
///             │       │
///           pcie0   pcie1                 `uplink` (no switches: devices hang on the sockets)
///           │   │   │   │
///         gpu0 nic0 gpu1 nic1             `gpu_port`, `nic_port`
///
/// Devices are dealt out evenly in order: GPU i of 8 hangs on switch i/2 of 4. Without sockets
/// there is no tree at all.
struct NodeShape {
  std::size_t gpus = 8, nics = 0, switches = 0, sockets = 0;
  std::size_t board = 0;  // sockets joined by `socket`: this many each; 0: all (NVL72: 2 a tray)
  Cable gpu_port, nic_port, uplink, socket, memory;  // memory without bandwidth: not modelled
  LinkKind gpu_port_kind = LinkKind::pcie;  // nvlink where the CPU speaks it (Summit, Grace)
  Mesh mesh = Mesh::none;
  Cable nvlink;  // to the NVSwitch: a GPU's total; in a mesh: between a pair, per link in the cube
  std::size_t group = 0;
  bool reduces = false;  // the NVSwitch can (NVLS)
};

Topology make_node(const NodeShape& shape);

/// The same machine with the first `gpus` GPUs of each node; everything else stays where it was.
Topology with_fewer_gpus(const Topology& node, std::size_t gpus);

// --- Many servers. A node joins with its NICs; without any with its GPUs, or its sockets.

/// One switch for all.
struct Star {
  Cable cable;
  bool reduces = false;
};

/// Leaves, spines and (3 levels) cores of `radix` ports. A leaf has `oversubscription` times more
/// bandwidth down than up. All NICs of a node are on one leaf, if they fit.
struct FatTree {
  Cable cable;
  std::size_t levels = 0;  // 2 or 3; 0: as many as needed
  std::size_t radix = 64;
  double oversubscription = 1;
  bool reduces = false;
};

/// NIC r of every node on a leaf of rail r; spines join the leaves. A spine is a chassis with as
/// many ports as there are leaves.
struct RailOptimized {
  Cable cable;
  std::size_t radix = 64;
  double oversubscription = 1;
  bool reduces = false;
};

/// One router per node, routers in a torus.
struct TorusFabric {
  Cable cable;                      // NIC to router
  Cable trunk;                      // router to router
  std::vector<std::size_t> extent;  // product = nodes
};

/// Groups of routers, all-to-all inside a group and between groups (Kim et al., ISCA 2008).
struct Dragonfly {
  Cable cable, local, global;  // to NICs, within a group, between groups
  std::size_t routers_per_group = 8, nodes_per_router = 4, globals_per_router = 4;
};

using Fabric = std::variant<std::monostate, Star, FatTree, RailOptimized, TorusFabric, Dragonfly>;

/// `count` copies of `node`, devices of a copy together and always in the same order, then the
/// fabric's. Throws InputError, with the arithmetic, when it cannot be built.
Topology cluster(const Topology& node, std::size_t count, const Fabric& fabric);

}  // namespace rehearse
