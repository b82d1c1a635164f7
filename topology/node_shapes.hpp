// A Topology taken apart for routing: what is inside each node, what lies between them, and which
// nodes are alike. Thousands of equal nodes share one Shape, so their insides are searched once.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "topology/shortest_paths.hpp"
#include "topology/topology.hpp"

namespace rehearse {

inline constexpr std::uint32_t nowhere = UINT32_MAX;

/// What crossing a link costs a route; see topology/DECISIONS.md for the rule.
Cost cost_of(const Topology& topology, const Link& link);

/// Lists of one kind, one list per group, in one array.
template <class T>
struct Grouped {
  std::vector<std::uint32_t> begin;
  std::vector<T> items;

  std::span<const T> operator[](std::size_t group) const {
    return std::span{items}.subspan(begin[group], begin[group + 1] - begin[group]);
  }
};

/// A link out of a node or into it. Copied from the Topology, whose devices and links are too large
/// to be looked at for each of a million routes.
struct Crossing {
  LinkId link = no_link;
  std::uint32_t outer = nowhere;  // its end in the fabric; nowhere: in another node
  std::uint32_t port = 0;         // its place among the links into nodes that leave that end
};

/// One link out of a node or into it, as seen from one device inside: the link's place in its
/// node's list, and the cost between the device and the link's far end.
struct Gate {
  std::uint32_t place = nowhere;
  Cost cost;
};

/// What all nodes of one shape share. Devices are numbered from 0 in every node.
struct Shape {
  ShortestPaths paths;
  std::vector<bool> closed;            // memory: never forwards
  std::vector<std::uint32_t> ordinal;  // of a device among those of its kind
  std::size_t exits_each = 1;          // NICs for each GPU, where there are more
  std::vector<Arc> exits, entries;     // only the end inside means anything
  std::vector<std::optional<std::vector<Gate>>> exits_from, entries_to;  // cheapest first
};

class NodeShapes {
 public:
  explicit NodeShapes(const Topology& topology);

  /// The group of a device: its node's number, or `fabric()`, the last one.
  std::size_t group_of(DeviceId d) const { return place_[index(d)].group; }
  std::size_t fabric() const { return topology_.node_count(); }
  /// A device's number in its group.
  std::uint32_t local(DeviceId d) const { return place_[index(d)].local; }
  std::span<const DeviceId> devices(std::size_t group) const { return devices_[group]; }
  /// Links with both ends in the group; arcs of its paths are positions in this list.
  std::span<const LinkId> links(std::size_t group) const { return links_[group]; }
  std::span<const Crossing> exits(std::size_t group) const { return exits_[group]; }
  std::span<const Crossing> entries(std::size_t group) const { return entries_[group]; }
  /// A switch of the fabric's number among those that links into nodes leave.
  std::size_t number(std::uint32_t outer) const { return number_[outer]; }

  ShortestPaths& paths(std::size_t group) {
    return group == fabric() ? *fabric_paths_ : shapes_[shape_of_[group]].paths;
  }
  /// A device's place among those of its kind in its node; its number in the fabric.
  std::size_t ordinal(DeviceId d) const {
    const std::size_t group = group_of(d);
    return group == fabric() ? local(d) : shapes_[shape_of_[group]].ordinal[local(d)];
  }
  /// How many of equal ways out of a node are one device's own.
  std::size_t exits_each(DeviceId d) const {
    const std::size_t group = group_of(d);
    return group == fabric() ? 1 : shapes_[shape_of_[group]].exits_each;
  }
  /// The ways from a device out of its group, or to it from outside; of the fabric: stay there.
  std::span<const Gate> exits_from(DeviceId source);
  std::span<const Gate> entries_to(DeviceId target);

 private:
  struct Located {
    std::uint32_t group, local;
  };

  void sort_into_groups();
  void number_ports();
  void find_shapes();
  Arc arc_of(LinkId link) const;
  std::vector<bool> closed_of(std::span<const DeviceId> devices) const;
  Shape make_shape(std::size_t node) const;
  std::vector<std::uint64_t> signature(std::size_t node) const;

  const Topology& topology_;
  std::vector<Located> place_;
  Grouped<DeviceId> devices_;
  Grouped<LinkId> links_;
  Grouped<Crossing> exits_, entries_;
  std::vector<std::uint32_t> number_;
  std::vector<std::uint32_t> shape_of_;
  std::vector<Shape> shapes_;
  std::optional<ShortestPaths> fabric_paths_;
};

}  // namespace rehearse
