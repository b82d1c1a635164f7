// Copies of a node, and the fabrics that join them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "sim/base/error.hpp"
#include "topology/generators.hpp"

namespace rehearse {

namespace {

// The devices with which copies of a node join the fabric, by their number in the node.
std::vector<std::size_t> ports_of(const Topology& node) {
  for (const DeviceKind kind : {DeviceKind::nic, DeviceKind::gpu, DeviceKind::cpu}) {
    std::vector<std::size_t> ports;
    for (std::size_t d = 0; d < node.devices().size(); ++d)
      if (node.devices()[d].kind == kind) ports.push_back(d);
    if (!ports.empty()) return ports;
  }
  throw InputError("a node without GPU, CPU or NIC cannot join a fabric");
}

class FabricBuilder {
 public:
  FabricBuilder(const Topology& node, std::size_t count) : node_{node}, count_{count} {
    built_.name = node.name;
    built_.accelerators = node.accelerators;
    built_.protocols = node.protocols;
    built_.library = node.library;
    for (std::size_t n = 0; n < count; ++n) copy(n);
  }

  Topology build(const Fabric& fabric) {
    if (!std::holds_alternative<std::monostate>(fabric)) ports_ = ports_of(node_);
    std::visit([this](const auto& kind) { add(kind); }, fabric);
    return std::move(built_);
  }

 private:
  void copy(std::size_t n) {
    const std::string prefix = fmt::format("node{}/", n);
    const std::size_t offset = n * node_.devices().size();
    for (Device device : node_.devices()) {
      device.name.insert(0, prefix);
      device.node = static_cast<NodeId>(n);
      built_.add(std::move(device));
    }
    for (Link link : node_.links()) {
      link.source = static_cast<DeviceId>(index(link.source) + offset);
      link.target = static_cast<DeviceId>(index(link.target) + offset);
      built_.connect(link);
    }
  }

  DeviceId port(std::size_t node, std::size_t p) const {
    return static_cast<DeviceId>(node * node_.devices().size() + ports_[p]);
  }

  std::vector<DeviceId> switches(std::string_view name, std::size_t count, bool reduces = false) {
    if (count > most_devices - std::min(most_devices, built_.devices().size()))
      throw InputError(
          fmt::format("{} {} switches beside {} devices are more than the {} supported", count,
                      name, built_.devices().size(), most_devices));
    std::vector<DeviceId> ids;
    for (std::size_t i = 0; i < count; ++i)
      ids.push_back(built_.add({.name = fmt::format("{}{}", name, i),
                                .kind = DeviceKind::network_switch,
                                .reduces = reduces}));
    return ids;
  }

  void join(DeviceId a, DeviceId b, Cable cable) {
    if (built_.links().size() >= most_links)
      throw InputError(
          fmt::format("the fabric needs more than the {} links supported", most_links));
    built_.connect_both({.source = a,
                         .target = b,
                         .bandwidth = cable.bandwidth,
                         .latency = cable.latency,
                         .kind = LinkKind::network});
  }

  void add(const std::monostate&) {
    if (count_ > 1) throw InputError(fmt::format("{} nodes, and no fabric to join them", count_));
  }
  void add(const Star& star);
  void add(const FatTree& tree);
  void add(const RailOptimized& rail);
  void add(const TorusFabric& torus);
  void add(const Dragonfly& dragonfly);
  void add_pods(const FatTree& tree, std::span<const DeviceId> leaves, std::size_t ups, Cable up);

  const Topology& node_;
  std::size_t count_;
  std::vector<std::size_t> ports_;
  Topology built_;
};

// Ports down and up of a leaf, and what each cable up carries so that the ratio is exact.
struct LeafShape {
  std::size_t down = 0, up = 0;
  Cable trunk;
};

LeafShape leaf_shape(std::size_t radix, double oversubscription, Cable cable) {
  if (radix < 2) throw InputError(fmt::format("a switch of radix {} has no port up", radix));
  const auto ports = static_cast<double>(radix);
  LeafShape leaf;
  leaf.down = std::min(radix - 1,
                       static_cast<std::size_t>(ports * oversubscription / (oversubscription + 1)));
  leaf.down = std::max<std::size_t>(leaf.down, 1);
  const double wanted = static_cast<double>(leaf.down) / oversubscription;
  leaf.up = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(wanted)));
  leaf.trunk = {(wanted / static_cast<double>(leaf.up)) * cable.bandwidth, cable.latency};
  return leaf;
}

constexpr std::size_t ceil_divide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

void FabricBuilder::add(const Star& star) {
  const DeviceId hub = switches("switch", 1, star.reduces).front();
  for (std::size_t n = 0; n < count_; ++n)
    for (std::size_t p = 0; p < ports_.size(); ++p) join(port(n, p), hub, star.cable);
}

void FabricBuilder::add(const FatTree& tree) {
  const LeafShape shape = leaf_shape(tree.radix, tree.oversubscription, tree.cable);
  // Whole nodes per leaf where they fit: then neighbours in rank order are neighbours in the tree.
  const std::size_t per_leaf =
      ports_.size() <= shape.down ? shape.down / ports_.size() * ports_.size() : shape.down;
  const std::size_t ports = count_ * ports_.size();
  const std::size_t leaf_count = ceil_divide(ports, per_leaf);
  const bool fits_two = leaf_count <= tree.radix;
  if (tree.levels == 2 && !fits_two)
    throw InputError(fmt::format(
        "{} ports on leaves of {} need {} leaves, and a spine has {} ports; use levels = 3", ports,
        per_leaf, leaf_count, tree.radix));
  const std::vector<DeviceId> leaves = switches("leaf", leaf_count, tree.reduces);
  for (std::size_t i = 0; i < ports; ++i)
    join(port(i / ports_.size(), i % ports_.size()), leaves[i / per_leaf], tree.cable);
  if (tree.levels == 3 || !fits_two) return add_pods(tree, leaves, shape.up, shape.trunk);
  if (leaf_count == 1) return;
  const std::vector<DeviceId> spines = switches("spine", shape.up, tree.reduces);
  for (const DeviceId leaf : leaves)
    for (const DeviceId spine : spines) join(leaf, spine, shape.trunk);
}

// Pods of radix/2 leaves. Spine i of every pod reaches the same radix/2 cores, one cable each.
void FabricBuilder::add_pods(const FatTree& tree, std::span<const DeviceId> leaves, std::size_t ups,
                             Cable trunk) {
  const std::size_t half = std::max<std::size_t>(1, tree.radix / 2);
  const std::size_t pods = ceil_divide(leaves.size(), half);
  if (pods > tree.radix)
    throw InputError(fmt::format(
        "{} leaves make {} pods of {}, and a core has {} ports; use switches of a larger radix",
        leaves.size(), pods, half, tree.radix));
  const std::vector<DeviceId> spines = switches("spine", pods * ups, tree.reduces);
  for (std::size_t l = 0; l < leaves.size(); ++l)
    for (std::size_t i = 0; i < ups; ++i) join(leaves[l], spines[l / half * ups + i], trunk);
  if (pods == 1) return;
  const std::vector<DeviceId> cores = switches("core", ups * half, tree.reduces);
  for (std::size_t pod = 0; pod < pods; ++pod)
    for (std::size_t i = 0; i < ups; ++i)
      for (std::size_t j = 0; j < half; ++j)
        join(spines[pod * ups + i], cores[i * half + j], trunk);
}

void FabricBuilder::add(const RailOptimized& rail) {
  const LeafShape shape = leaf_shape(rail.radix, rail.oversubscription, rail.cable);
  const std::size_t rails = ports_.size();
  const std::size_t per_rail = ceil_divide(count_, shape.down);
  const std::vector<DeviceId> leaves = switches("leaf", rails * per_rail, rail.reduces);
  for (std::size_t n = 0; n < count_; ++n)
    for (std::size_t r = 0; r < rails; ++r)
      join(port(n, r), leaves[r * per_rail + n / shape.down], rail.cable);
  if (leaves.size() == 1) return;
  const std::vector<DeviceId> spines = switches("spine", shape.up, rail.reduces);
  for (const DeviceId leaf : leaves)
    for (const DeviceId spine : spines) join(leaf, spine, shape.trunk);
}

void FabricBuilder::add(const TorusFabric& torus) {
  std::size_t product = 1;
  for (const std::size_t n : torus.extent) product *= n;
  if (product != count_)
    throw InputError(fmt::format("a torus of {} has {} places for {} nodes",
                                 fmt::join(torus.extent, " x "), product, count_));
  const std::vector<DeviceId> routers = switches("router", count_);
  for (std::size_t n = 0; n < count_; ++n)
    for (std::size_t p = 0; p < ports_.size(); ++p) join(port(n, p), routers[n], torus.cable);
  const Topology pattern = rehearse::torus(torus.extent, torus.trunk);
  for (std::size_t l = 0; l < pattern.links().size(); l += 2)
    join(routers[index(pattern.links()[l].source)], routers[index(pattern.links()[l].target)],
         torus.trunk);
}

// Group i reaches group j with the port (j - i - 1) mod groups of its list; leftover ports make
// further rounds, so every pair of groups has the same number of cables.
void FabricBuilder::add(const Dragonfly& fly) {
  const std::size_t per_group = fly.routers_per_group * fly.nodes_per_router;
  const std::size_t groups = ceil_divide(count_, per_group);
  const std::size_t globals = fly.routers_per_group * fly.globals_per_router;
  if (groups > globals + 1)
    throw InputError(fmt::format(
        "{} nodes make {} groups of {} x {} nodes, and {} global cables a group reach only {}",
        count_, groups, fly.routers_per_group, fly.nodes_per_router, globals, globals + 1));
  const std::vector<DeviceId> routers = switches("router", groups * fly.routers_per_group);
  for (std::size_t n = 0; n < count_; ++n)
    for (std::size_t p = 0; p < ports_.size(); ++p)
      join(port(n, p), routers[n / fly.nodes_per_router], fly.cable);
  const auto router = [&](std::size_t group, std::size_t r) {
    return routers[group * fly.routers_per_group + r];
  };
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t a = 0; a < fly.routers_per_group; ++a)
      for (std::size_t b = a + 1; b < fly.routers_per_group; ++b)
        join(router(g, a), router(g, b), fly.local);
  const std::size_t others = groups - 1;
  for (std::size_t i = 0; i < groups; ++i)
    for (std::size_t j = i + 1; j < groups; ++j)
      for (std::size_t round = 0; round < globals / others; ++round) {
        const std::size_t there = j - i - 1 + round * others;
        const std::size_t back = groups - (j - i) - 1 + round * others;
        join(router(i, there / fly.globals_per_router), router(j, back / fly.globals_per_router),
             fly.global);
      }
}

}  // namespace

Topology cluster(const Topology& node, std::size_t count, const Fabric& fabric) {
  const std::size_t size = node.devices().size();
  if (count == 0 || size == 0) throw InputError("a cluster needs at least one node with a device");
  if (count > most_devices / size)
    throw InputError(fmt::format("{} nodes x {} devices are more than the {} devices supported",
                                 count, size, most_devices));
  if (count > most_links / std::max<std::size_t>(1, node.links().size()))
    throw InputError(fmt::format("{} nodes x {} links are more than the {} links supported", count,
                                 node.links().size(), most_links));
  return FabricBuilder{node, count}.build(fabric);
}

}  // namespace rehearse
