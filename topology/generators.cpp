// Machines of GPUs only, and single servers.
#include "topology/generators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

Topology plain_gpus(std::size_t count) {
  if (count > most_devices)
    throw InputError(
        fmt::format("{} GPUs are more than the {} devices supported", count, most_devices));
  Topology topology;
  for (std::size_t i = 0; i < count; ++i)
    topology.add({.name = fmt::format("gpu{}", i), .node = NodeId{0}});
  return topology;
}

void join(Topology& topology, std::size_t a, std::size_t b, Cable cable, LinkKind kind) {
  topology.connect_both({.source = static_cast<DeviceId>(a),
                         .target = static_cast<DeviceId>(b),
                         .bandwidth = cable.bandwidth,
                         .latency = cable.latency,
                         .kind = kind});
}

}  // namespace

Topology ring(std::size_t gpus, Cable cable) {
  Topology topology = plain_gpus(gpus);
  // Two GPUs are one cable, not a ring of two parallel ones.
  const std::size_t cables = gpus <= 2 ? gpus / 2 : gpus;
  for (std::size_t i = 0; i < cables; ++i)
    join(topology, i, (i + 1) % gpus, cable, LinkKind::nvlink);
  return topology;
}

Topology fully_connected(std::size_t gpus, Cable cable) {
  if (gpus > most_devices || gpus * (gpus - 1) > most_links)
    throw InputError(
        fmt::format("{} GPUs fully connected need {} x {} links, more than the {} supported", gpus,
                    gpus, gpus - 1, most_links));
  Topology topology = plain_gpus(gpus);
  for (std::size_t i = 0; i < gpus; ++i)
    for (std::size_t j = i + 1; j < gpus; ++j) join(topology, i, j, cable, LinkKind::nvlink);
  return topology;
}

Topology star(std::size_t gpus, Cable cable, bool reduces) {
  Topology topology = plain_gpus(gpus);
  const DeviceId hub = topology.add({.name = "switch0",
                                     .kind = DeviceKind::network_switch,
                                     .node = NodeId{0},
                                     .reduces = reduces});
  for (std::size_t i = 0; i < gpus; ++i) join(topology, i, index(hub), cable, LinkKind::nvlink);
  return topology;
}

Topology torus(std::span<const std::size_t> extent, Cable cable) {
  std::size_t count = 1;
  for (const std::size_t n : extent) {
    ASSERT(n > 0);
    if (n > most_devices / count)
      throw InputError(
          fmt::format("a torus of {} x {} or more GPUs exceeds the {} devices supported", count, n,
                      most_devices));
    count *= n;
  }
  Topology topology = plain_gpus(count);
  std::size_t stride = 1;
  for (const std::size_t n : extent) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i / stride % n;
      const bool wraps = at + 1 == n;
      if (n == 1 || (wraps && n == 2)) continue;  // one cable between two
      join(topology, i, wraps ? i - at * stride : i + stride, cable, LinkKind::nvlink);
    }
    stride *= n;
  }
  return topology;
}

namespace {

// NVLinks between the GPUs of a DGX-1 with V100: `nvidia-smi topo -m` on the machine, and Figure 4
// of NVIDIA's whitepaper WP-08437-002 (2017). Each GPU has 6.
struct CubeEdge {
  std::uint8_t a, b, links;
};
constexpr std::array<CubeEdge, 16> cube_edges{{{0, 1, 1},
                                               {0, 2, 1},
                                               {0, 3, 2},
                                               {0, 4, 2},
                                               {1, 2, 2},
                                               {1, 3, 1},
                                               {1, 5, 2},
                                               {2, 3, 2},
                                               {2, 6, 1},
                                               {3, 7, 1},
                                               {4, 5, 1},
                                               {4, 6, 1},
                                               {4, 7, 2},
                                               {5, 6, 2},
                                               {5, 7, 1},
                                               {6, 7, 2}}};

// Where the devices of each kind begin, in the order they are added.
struct Places {
  std::size_t gpu, nic, nvswitch, pcie, cpu, memory;
};

Places add_devices(Topology& node, const NodeShape& shape) {
  const auto add = [&](std::string_view name, DeviceKind kind, std::size_t count, bool reduces) {
    const std::size_t begin = node.devices().size();
    for (std::size_t i = 0; i < count; ++i)
      node.add({.name = fmt::format("{}{}", name, i),
                .kind = kind,
                .node = NodeId{0},
                .reduces = reduces});
    return begin;
  };
  const bool has_memory = shape.memory.bandwidth.count() > 0;
  return {.gpu = add("gpu", DeviceKind::gpu, shape.gpus, false),
          .nic = add("nic", DeviceKind::nic, shape.nics, false),
          .nvswitch = add("nvswitch", DeviceKind::network_switch, shape.mesh == Mesh::nvswitch,
                          shape.reduces),
          .pcie = add("pcie", DeviceKind::network_switch, shape.switches, false),
          .cpu = add("cpu", DeviceKind::cpu, shape.sockets, false),
          .memory = add("memory", DeviceKind::memory, has_memory ? shape.sockets : 0, false)};
}

void connect_host(Topology& node, const NodeShape& shape, const Places& at) {
  if (shape.sockets == 0) return;
  const std::size_t board = shape.board > 0 ? shape.board : shape.sockets;
  const std::size_t slots = shape.switches > 0 ? shape.switches : shape.sockets;
  const std::size_t slot = shape.switches > 0 ? at.pcie : at.cpu;
  for (std::size_t i = 0; i < shape.gpus; ++i)
    join(node, at.gpu + i, slot + i * slots / shape.gpus, shape.gpu_port, shape.gpu_port_kind);
  for (std::size_t i = 0; i < shape.nics; ++i)
    join(node, at.nic + i, slot + i * slots / shape.nics, shape.nic_port, LinkKind::pcie);
  for (std::size_t i = 0; i < shape.switches; ++i)
    join(node, at.pcie + i, at.cpu + i * shape.sockets / shape.switches, shape.uplink,
         LinkKind::pcie);
  for (std::size_t i = 0; i < shape.sockets; ++i)
    for (std::size_t j = i + 1; j < shape.sockets && i / board == j / board; ++j)
      join(node, at.cpu + i, at.cpu + j, shape.socket, LinkKind::socket);
  if (shape.memory.bandwidth.count() > 0)
    for (std::size_t i = 0; i < shape.sockets; ++i)
      join(node, at.cpu + i, at.memory + i, shape.memory, LinkKind::memory);
}

void connect_mesh(Topology& node, const NodeShape& shape, const Places& at) {
  switch (shape.mesh) {
    case Mesh::none:
      return;
    case Mesh::nvswitch:
      for (std::size_t i = 0; i < shape.gpus; ++i)
        join(node, at.gpu + i, at.nvswitch, shape.nvlink, LinkKind::nvlink);
      return;
    case Mesh::groups:
      ASSERT(shape.group > 0);
      for (std::size_t i = 0; i < shape.gpus; ++i)
        for (std::size_t j = i + 1; j < shape.gpus && j / shape.group == i / shape.group; ++j)
          join(node, at.gpu + i, at.gpu + j, shape.nvlink, LinkKind::nvlink);
      return;
    case Mesh::hybrid_cube_mesh:
      ASSERT(shape.gpus == 8);
      for (const CubeEdge& edge : cube_edges)
        join(node, at.gpu + edge.a, at.gpu + edge.b,
             {static_cast<double>(edge.links) * shape.nvlink.bandwidth, shape.nvlink.latency},
             LinkKind::nvlink);
      return;
  }
}

}  // namespace

Topology make_node(const NodeShape& shape) {
  const std::size_t limit = 1024;  // of each kind in one server; all pairs of GPUs are links
  if (shape.gpus > limit || shape.nics > limit || shape.switches > limit || shape.sockets > 64)
    throw InputError(fmt::format(
        "a node of {} GPUs, {} NICs, {} switches and {} sockets is too large; at most {} each and "
        "64 sockets",
        shape.gpus, shape.nics, shape.switches, shape.sockets, limit));
  Topology node;
  const Places at = add_devices(node, shape);
  connect_mesh(node, shape, at);
  connect_host(node, shape, at);
  return node;
}

Topology with_fewer_gpus(const Topology& node, std::size_t gpus) {
  Topology fewer;
  fewer.name = node.name;
  fewer.accelerators = node.accelerators;
  fewer.protocols = node.protocols;
  fewer.library = node.library;
  std::vector<DeviceId> now(node.devices().size());
  std::vector<bool> stays(node.devices().size());
  std::vector<std::size_t> seen(node.node_count() + 1);  // the last: in no node
  for (std::size_t d = 0; d < node.devices().size(); ++d) {
    const Device& device = node.devices()[d];
    const std::size_t place = std::min(index(device.node), node.node_count());
    stays[d] = device.kind != DeviceKind::gpu || seen[place]++ < gpus;
    if (stays[d]) now[d] = fewer.add(device);
  }
  for (Link link : node.links()) {
    if (!stays[index(link.source)] || !stays[index(link.target)]) continue;
    link.source = now[index(link.source)];
    link.target = now[index(link.target)];
    fewer.connect(link);
  }
  return fewer;
}

}  // namespace rehearse
