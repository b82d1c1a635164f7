// Building a Topology, one device and one link at a time.
#include "topology/topology.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rehearse {

DeviceId Topology::add(Device device) {
  const auto id = static_cast<DeviceId>(devices_.size());
  if (device.kind == DeviceKind::gpu) gpus_.push_back(id);
  if (device.kind == DeviceKind::cpu) cpus_.push_back(id);
  if (device.node != no_node) node_count_ = std::max(node_count_, index(device.node) + 1);
  devices_.push_back(std::move(device));
  return id;
}

LinkId Topology::connect(Link link) {
  ASSERT(index(link.source) < devices_.size() && index(link.target) < devices_.size());
  ASSERT(link.bandwidth.count() > 0 && link.latency >= Time{});
  links_.push_back(link);
  return static_cast<LinkId>(links_.size() - 1);
}

LinkId Topology::connect_both(Link forward) {
  const LinkId id = connect(forward);
  std::swap(forward.source, forward.target);
  connect(forward);
  return id;
}

void Topology::apply_efficiency() {
  for (Link& link : links_) {
    const double reached = library.efficiency[static_cast<std::size_t>(link.kind)];
    if (reached == 1 || link.rated.count() > 0) continue;
    link.rated = link.bandwidth;
    link.bandwidth = reached * link.bandwidth;
  }
}

const Accelerator& accelerator_of(const Topology& topology, Rank rank) {
  static const Accelerator unknown;
  const std::size_t which = topology[topology.device_of(rank)].accelerator;
  return which < topology.accelerators.size() ? topology.accelerators[which] : unknown;
}

bool is_reverse(const Link& a, const Link& b) {
  return a.source == b.target && a.target == b.source && a.bandwidth == b.bandwidth &&
         a.latency == b.latency && a.kind == b.kind;
}

bool is_device_name(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return name.find_first_not_of(' ') != std::string_view::npos &&
         std::none_of(name.begin(), name.end(), is_control);
}

std::string_view to_string(DeviceKind kind) {
  constexpr std::array<std::string_view, 5> names{"gpu", "nic", "switch", "cpu", "memory"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(LinkKind kind) {
  constexpr std::array<std::string_view, 6> names{"nvlink", "pcie",   "network",
                                                  "socket", "memory", "other"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace rehearse
