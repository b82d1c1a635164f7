// Sorting devices and links into nodes by counting, and nodes into shapes by comparing.
#include "topology/node_shapes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace rehearse {

namespace {

// Worst first: through somebody else's node, through a GPU, through a CPU's root complex; NCCL
// orders its path types in the same spirit. A path is simple and devices are fewer than 2^21, so
// the three counts never run into each other.
constexpr std::uint64_t enters_node = std::uint64_t{1} << 42;
constexpr std::uint64_t leaves_gpu = std::uint64_t{1} << 21;
constexpr std::uint64_t leaves_cpu = 1;

// Long enough that NVLink beats PCIe between two GPUs on one PCIe switch, where PCIe has the
// shorter latency; short enough that latency still decides between links of one kind.
constexpr Bytes routed_message = 16_KiB;

template <class T>
T item(std::size_t i) {
  if constexpr (std::is_same_v<T, Crossing>)
    return {.link = static_cast<LinkId>(i)};
  else
    return static_cast<T>(i);
}

std::vector<Arc> transformed(const auto& items, auto arc_of) {
  std::vector<Arc> arcs;
  for (const auto& each : items) arcs.push_back(arc_of(each));
  return arcs;
}

// Sorts 0..count-1 into groups; `group_of` says nowhere for what belongs to none.
template <class T, class GroupOf>
Grouped<T> grouped(std::size_t groups, std::size_t count, GroupOf group_of) {
  Grouped<T> result;
  result.begin.assign(groups + 1, 0);
  for (std::size_t i = 0; i < count; ++i)
    if (const std::uint32_t g = group_of(i); g != nowhere) ++result.begin[g + 1];
  for (std::size_t g = 0; g < groups; ++g) result.begin[g + 1] += result.begin[g];
  result.items.resize(result.begin[groups]);
  std::vector<std::uint32_t> place{result.begin.begin(), result.begin.end() - 1};
  for (std::size_t i = 0; i < count; ++i)
    if (const std::uint32_t g = group_of(i); g != nowhere) result.items[place[g]++] = item<T>(i);
  return result;
}

template <class CostOf>
std::vector<Gate> gates(std::size_t count, CostOf cost_between) {
  std::vector<Gate> result;
  for (std::uint32_t i = 0; i < count; ++i)
    if (const Cost cost = cost_between(i); cost != Cost::infinite()) result.push_back({i, cost});
  std::stable_sort(result.begin(), result.end(),
                   [](const Gate& a, const Gate& b) { return a.cost < b.cost; });
  return result;
}

constexpr Gate open_gate{nowhere, Cost{}};

}  // namespace

// The source's own departure and the target's entry count too: they are the same on all routes.
Cost cost_of(const Topology& topology, const Link& link) {
  const Device &from = topology[link.source], &to = topology[link.target];
  const BytesPerSecond sound{link.bandwidth.count() * link.worn};
  const Time time = link.latency - link.delay + Time::round(routed_message / sound);
  Cost cost{.detours = 0, .time = time.ps(), .hops = 1};
  if (to.node != no_node && to.node != from.node) cost.detours += enters_node;
  if (from.kind == DeviceKind::gpu) cost.detours += leaves_gpu;
  if (from.kind == DeviceKind::cpu) cost.detours += leaves_cpu;
  return cost;
}

NodeShapes::NodeShapes(const Topology& topology) : topology_{topology} {
  sort_into_groups();
  number_ports();
  find_shapes();
  fabric_paths_.emplace(transformed(links(fabric()), [this](LinkId l) { return arc_of(l); }),
                        closed_of(devices(fabric())));
}

void NodeShapes::sort_into_groups() {
  const auto all_devices = topology_.devices();
  const auto all_links = topology_.links();
  const std::size_t groups = fabric() + 1;
  for (const Device& device : all_devices)
    place_.push_back({device.node == no_node ? static_cast<std::uint32_t>(fabric())
                                             : static_cast<std::uint32_t>(device.node),
                      0});
  devices_ =
      grouped<DeviceId>(groups, all_devices.size(), [&](std::size_t d) { return place_[d].group; });
  for (std::size_t g = 0; g < groups; ++g)
    for (std::uint32_t i = 0; i < devices_[g].size(); ++i) place_[index(devices_[g][i])].local = i;
  const auto ends = [&](std::size_t l) {
    return std::pair{place_[index(all_links[l].source)].group,
                     place_[index(all_links[l].target)].group};
  };
  links_ = grouped<LinkId>(groups, all_links.size(), [&](std::size_t l) {
    const auto [from, to] = ends(l);
    return from == to ? from : nowhere;
  });
  exits_ = grouped<Crossing>(groups, all_links.size(), [&](std::size_t l) {
    const auto [from, to] = ends(l);
    return from == to || from == fabric() ? nowhere : from;
  });
  entries_ = grouped<Crossing>(groups, all_links.size(), [&](std::size_t l) {
    const auto [from, to] = ends(l);
    return from == to || to == fabric() ? nowhere : to;
  });
}

void NodeShapes::number_ports() {
  for (Crossing& exit : exits_.items)
    if (const DeviceId end = topology_[exit.link].target; group_of(end) == fabric())
      exit.outer = local(end);
  std::vector<std::uint32_t> ports(devices(fabric()).size());
  for (Crossing& entry : entries_.items)
    if (const DeviceId end = topology_[entry.link].source; group_of(end) == fabric()) {
      entry.outer = local(end);
      entry.port = ports[entry.outer]++;
    }
  number_.resize(ports.size());
  std::uint32_t with_ports = 0;
  for (std::size_t v = 0; v < ports.size(); ++v)
    if (ports[v] > 0) number_[v] = with_ports++;
}

Arc NodeShapes::arc_of(LinkId l) const {
  const Link& link = topology_[l];
  return {local(link.source), local(link.target), cost_of(topology_, link)};
}

std::vector<bool> NodeShapes::closed_of(std::span<const DeviceId> of) const {
  std::vector<bool> closed;
  for (const DeviceId d : of) closed.push_back(topology_[d].kind == DeviceKind::memory);
  return closed;
}

// Nodes with equal signatures answer every question inside them alike.
std::vector<std::uint64_t> NodeShapes::signature(std::size_t node) const {
  std::vector<std::uint64_t> words;
  words.reserve(devices_[node].size() + 3 * links_[node].size() + 6 * exits_[node].size() + 3);
  for (const DeviceId d : devices_[node])
    words.push_back(static_cast<std::uint64_t>(topology_[d].kind));
  const auto write = [&](LinkId l, bool has_source, bool has_target) {
    const Arc arc = arc_of(l);
    words.push_back(std::uint64_t{has_source ? arc.source : 0} << 32 |
                    (has_target ? arc.target : 0));
    words.push_back(arc.cost.detours);
    words.push_back(static_cast<std::uint64_t>(arc.cost.time));
  };
  for (const LinkId l : links_[node]) write(l, true, true);
  words.push_back(UINT64_MAX);  // a fence: lists of different length must not look alike
  for (const Crossing& exit : exits_[node]) write(exit.link, true, false);
  words.push_back(UINT64_MAX);
  for (const Crossing& entry : entries_[node]) write(entry.link, false, true);
  return words;
}

Shape NodeShapes::make_shape(std::size_t node) const {
  const auto arc = [this](LinkId l) { return arc_of(l); };
  const auto crossing = [this](const Crossing& c) { return arc_of(c.link); };
  Shape shape{.paths = {transformed(links_[node], arc), closed_of(devices_[node])},
              .closed = closed_of(devices_[node]),
              .ordinal = {},
              .exits = transformed(exits_[node], crossing),
              .entries = transformed(entries_[node], crossing),
              .exits_from = {},
              .entries_to = {}};
  std::array<std::uint32_t, 5> of_kind{};
  for (const DeviceId d : devices_[node])
    shape.ordinal.push_back(of_kind[static_cast<std::size_t>(topology_[d].kind)]++);
  const std::uint32_t gpus = of_kind[static_cast<std::size_t>(DeviceKind::gpu)];
  const std::uint32_t nics = of_kind[static_cast<std::size_t>(DeviceKind::nic)];
  if (gpus > 0) shape.exits_each = std::max<std::size_t>(1, nics / gpus);
  shape.exits_from.resize(devices_[node].size());
  shape.entries_to.resize(devices_[node].size());
  return shape;
}

void NodeShapes::find_shapes() {
  std::map<std::vector<std::uint64_t>, std::uint32_t> known;
  for (std::size_t node = 0; node < topology_.node_count(); ++node) {
    const auto [at, is_new] =
        known.try_emplace(signature(node), static_cast<std::uint32_t>(shapes_.size()));
    if (is_new) shapes_.push_back(make_shape(node));
    shape_of_.push_back(at->second);
  }
}

std::span<const Gate> NodeShapes::exits_from(DeviceId source) {
  if (group_of(source) == fabric()) return {&open_gate, 1};
  Shape& s = shapes_[shape_of_[group_of(source)]];
  std::optional<std::vector<Gate>>& known = s.exits_from[local(source)];
  if (!known)
    known = gates(s.exits.size(), [&](std::uint32_t i) {
      const std::uint32_t last = s.exits[i].source;
      if (s.closed[last] && last != local(source)) return Cost::infinite();
      return s.paths.distance(local(source), last) + s.exits[i].cost;
    });
  return *known;
}

std::span<const Gate> NodeShapes::entries_to(DeviceId target) {
  if (group_of(target) == fabric()) return {&open_gate, 1};
  Shape& s = shapes_[shape_of_[group_of(target)]];
  std::optional<std::vector<Gate>>& known = s.entries_to[local(target)];
  if (!known)
    known = gates(s.entries.size(), [&](std::uint32_t i) {
      const std::uint32_t first = s.entries[i].target;
      if (s.closed[first] && first != local(target)) return Cost::infinite();
      return s.paths.distance(first, local(target)) + s.entries[i].cost;
    });
  return *known;
}

}  // namespace rehearse
