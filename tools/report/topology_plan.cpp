// Rows by kind of device and, in the fabric, by distance from the nodes; then boxes, then cables
// between boxes summed up.
#include "tools/report/topology_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

namespace rehearse {

namespace {

constexpr std::size_t most_nodes = 2, most_in_row = 16, most_in_fabric_row = 8;
constexpr std::size_t unplaced = SIZE_MAX;

// Rows of a node, from its top.
enum NodeRow : std::size_t {
  nic_row,
  cpu_row,
  host_switch_row,
  gpu_row,
  mesh_switch_row,
  node_rows
};

class Planner {
 public:
  Planner(const Topology& topology, std::span<const Bytes> bytes, std::span<const double> shares)
      : topology_{topology}, bytes_{bytes}, shares_{shares}, box_(topology.devices().size()) {}

  TopologyPlan run() {
    find_mesh_switches();
    find_fabric_levels();
    choose_nodes();
    place_devices();
    join_cables();
    close_empty_rows();
    return std::move(plan_);
  }

 private:
  // A machine without nodes (a ring, a star) is one.
  bool is_in_node(const Device& device) const {
    return device.node != no_node || topology_.node_count() == 0;
  }

  void find_mesh_switches() {
    is_mesh_.assign(topology_.devices().size(), false);
    for (const Link& link : topology_.links())
      if (link.kind == LinkKind::nvlink || topology_.node_count() == 0)
        is_mesh_[index(link.source)] = is_mesh_[index(link.target)] = true;
  }

  // Hops from the nearest node, 1 for leaves.
  void find_fabric_levels() {
    level_.assign(topology_.devices().size(), 0);
    std::vector<std::vector<std::size_t>> beside(topology_.devices().size());
    for (const Link& link : topology_.links())
      beside[index(link.source)].push_back(index(link.target));
    std::deque<std::size_t> queue;
    std::vector<bool> seen(topology_.devices().size());
    for (std::size_t d = 0; d < topology_.devices().size(); ++d)
      if (is_in_node(topology_.devices()[d])) seen[d] = true, queue.push_back(d);
    for (; !queue.empty(); queue.pop_front())
      for (const std::size_t next : beside[queue.front()])
        if (!seen[next]) {
          seen[next] = true;
          level_[next] = level_[queue.front()] + 1;
          levels_ = std::max(levels_, level_[next]);
          queue.push_back(next);
        }
  }

  // All of a few, else the one whose links are busiest.
  void choose_nodes() {
    const std::size_t nodes = topology_.node_count();
    if (nodes <= most_nodes) {
      for (std::size_t n = 0; n < nodes; ++n) shown_.push_back(static_cast<NodeId>(n));
      return;
    }
    std::vector<double> most(nodes);
    for (std::size_t l = 0; l < shares_.size(); ++l)
      for (const DeviceId end : {topology_.links()[l].source, topology_.links()[l].target})
        if (const NodeId node = topology_[end].node; node != no_node)
          most[index(node)] = std::max(most[index(node)], shares_[l]);
    shown_.push_back(
        static_cast<NodeId>(std::max_element(most.begin(), most.end()) - most.begin()));
  }

  bool is_shown(NodeId node) const {
    return std::find(shown_.begin(), shown_.end(), node) != shown_.end();
  }

  std::size_t row_of(std::size_t d) const {
    const Device& device = topology_.devices()[d];
    if (!is_in_node(device)) return levels_ - level_[d];
    const auto in_node = [&] {
      switch (device.kind) {
        case DeviceKind::nic:
          return nic_row;
        case DeviceKind::gpu:
          return gpu_row;
        case DeviceKind::network_switch:
          return is_mesh_[d] ? mesh_switch_row : host_switch_row;
        case DeviceKind::cpu:
        case DeviceKind::memory:
          return cpu_row;
      }
      return cpu_row;
    };
    return levels_ + in_node();
  }

  void place_devices() {
    std::fill(box_.begin(), box_.end(), unplaced);
    plan_.rows = levels_ + node_rows;
    std::map<std::pair<std::size_t, NodeId>, std::vector<std::size_t>> rows;
    std::size_t others = unplaced;
    for (std::size_t d = 0; d < topology_.devices().size(); ++d) {
      const Device& device = topology_.devices()[d];
      if (device.kind == DeviceKind::memory) continue;  // beside its socket, and never a bottleneck
      if (device.node != no_node && !is_shown(device.node)) {
        if (others == unplaced) others = add_other_nodes();
        box_[d] = others;
        continue;
      }
      rows[{row_of(d), device.node}].push_back(d);
    }
    for (const auto& [key, devices] : rows) place_row(key.first, key.second, devices);
    std::vector<std::size_t> order(plan_.devices.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return plan_.devices[a].row < plan_.devices[b].row;
    });
    std::vector<ShownDevice> sorted;
    std::vector<std::size_t> moved(order.size());
    for (const std::size_t i : order) moved[i] = sorted.size(), sorted.push_back(plan_.devices[i]);
    plan_.devices = std::move(sorted);
    for (std::size_t& box : box_)
      if (box != unplaced) box = moved[box];
  }

  std::size_t add_other_nodes() {
    const std::size_t count = topology_.node_count() - shown_.size();
    plan_.devices.push_back(
        {fmt::format("{} more nodes", count), count, levels_ + gpu_row, no_node, true});
    return plan_.devices.size() - 1;
  }

  void place_row(std::size_t row, NodeId node, const std::vector<std::size_t>& devices) {
    const std::size_t most = row < levels_ ? most_in_fabric_row : most_in_row;
    // One box for those beyond, unless it would stand for a single one.
    const std::size_t alone = devices.size() > most ? most - 1 : devices.size();
    for (std::size_t i = 0; i < alone; ++i) {
      const std::string& name = topology_.devices()[devices[i]].name;
      box_[devices[i]] = plan_.devices.size();
      plan_.devices.push_back({name.substr(name.rfind('/') + 1), 1, row, node, false});
    }
    if (alone == devices.size()) return;
    for (std::size_t i = alone; i < devices.size(); ++i) box_[devices[i]] = plan_.devices.size();
    plan_.devices.push_back(
        {fmt::format("{} more", devices.size() - alone), devices.size() - alone, row, node, false});
  }

  void join_cables() {
    std::map<std::pair<std::size_t, std::size_t>, ShownCable> cables;
    for (std::size_t l = 0; l < topology_.links().size(); ++l) {
      const Link& link = topology_.links()[l];
      const std::size_t source = box_[index(link.source)], target = box_[index(link.target)];
      if (source == unplaced || target == unplaced || source == target) continue;
      const auto [a, b] = std::minmax(source, target);
      ShownCable& cable = cables[{a, b}];
      cable.a = a, cable.b = b;
      ++cable.cables;
      cable.bandwidth = std::max(cable.bandwidth, link.bandwidth);
      cable.kind = link.kind;
      if (!shares_.empty()) cable.busiest = std::max(cable.busiest, shares_[l]);
      if (!bytes_.empty()) cable.bytes += static_cast<double>(bytes_[l].count());
    }
    for (auto& [ends, cable] : cables) {
      cable.cables = (cable.cables + 1) / 2;
      plan_.cables.push_back(cable);
    }
  }

  void close_empty_rows() {
    std::vector<bool> used(plan_.rows);
    for (const ShownDevice& device : plan_.devices) used[device.row] = true;
    std::vector<std::size_t> row(plan_.rows);
    std::size_t next = 0;
    for (std::size_t r = 0; r < plan_.rows; ++r) {
      row[r] = next;
      next += used[r];
    }
    for (ShownDevice& device : plan_.devices) device.row = row[device.row];
    plan_.rows = next;
  }

  const Topology& topology_;
  std::span<const Bytes> bytes_;
  std::span<const double> shares_;
  std::vector<std::size_t> box_;  // by device
  std::vector<bool> is_mesh_;
  std::vector<std::size_t> level_;
  std::size_t levels_ = 0;
  std::vector<NodeId> shown_;
  TopologyPlan plan_;
};

}  // namespace

std::vector<double> busy_shares(const Topology& topology, std::span<const Bytes> link_bytes,
                                Time whole) {
  std::vector<double> shares(link_bytes.size());
  for (std::size_t l = 0; l < shares.size(); ++l) {
    const Link& link = topology.links()[l];
    const double most = link.bandwidth.count() * whole.seconds().count();
    if (most > 0) shares[l] = static_cast<double>(link_bytes[l].count()) / most;
  }
  return shares;
}

TopologyPlan plan_topology(const Topology& topology, std::span<const Bytes> link_bytes,
                           std::span<const double> shares) {
  return Planner(topology, link_bytes, shares).run();
}

}  // namespace rehearse
