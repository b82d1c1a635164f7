// Which keys each kind of node and fabric has. To add a kind: one word in its list, one case.
#include "topology/formats/cluster_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rehearse {

namespace {

// A mistake leaves a harmless value behind: nothing is built once a problem is noted.
constexpr Cable placeholder{BytesPerSecond{1}, Time{}};

Cable read_cable(Fields& fields) {
  for (const char* key : {"bandwidth", "latency"}) fields.require(key);
  return {fields.bandwidth("bandwidth").value_or(placeholder.bandwidth),
          fields.time("latency").value_or(placeholder.latency)};
}

// A cable in a table of its own: `uplink = { bandwidth = "32GB/s", latency = "200ns" }`.
Cable read_cable(Fields& fields, std::string_view key, Problems& problems) {
  const Value* table = fields.table(key);
  if (!table) return placeholder;
  Fields cable{*table, std::string{key}, problems};
  const Cable result = read_cable(cable);
  cable.finish();
  return result;
}

enum class NodeKind : std::uint8_t {
  single,
  ring,
  fully_connected,
  star,
  torus2d,
  torus3d,
  pcie_tree,
  nvswitch,
  hybrid_cube_mesh,
  nvlink_groups,
};
constexpr std::array<std::string_view, 10> node_kinds{
    "single",    "ring",     "fully_connected",  "star",         "torus2d", "torus3d",
    "pcie_tree", "nvswitch", "hybrid_cube_mesh", "nvlink_groups"};

std::vector<std::size_t> read_extent(Fields& fields, std::size_t dimensions) {
  std::vector<std::size_t> extent;
  fields.require("extent");
  const Value* given = fields.any("extent");
  if (!given) return extent;
  const Array* items = given->array();
  bool is_good = items && items->size() == dimensions;
  for (std::size_t i = 0; is_good && i < dimensions; ++i) {
    const std::int64_t* n = std::get_if<std::int64_t>(&(*items)[i].data);
    is_good = n && *n > 0;
    if (is_good) extent.push_back(static_cast<std::size_t>(*n));
  }
  if (is_good) return extent;
  fields.complain("extent",
                  fmt::format("'extent' must be a list of {} whole numbers above 0", dimensions));
  return {};
}

Topology read_plain_node(Fields& fields, NodeKind kind, std::optional<std::size_t> gpus,
                         Problems& problems) {
  if (kind == NodeKind::single) {
    fields.finish();
    return problems.empty() ? fully_connected(1, placeholder) : Topology{};
  }
  const Cable cable = read_cable(fields);
  const bool is_torus = kind == NodeKind::torus2d || kind == NodeKind::torus3d;
  if (is_torus) {
    const std::vector<std::size_t> extent = read_extent(fields, kind == NodeKind::torus2d ? 2 : 3);
    if (gpus) problems.push_back({fields.place(), "a torus has no other number of GPUs"});
    fields.finish();
    return problems.empty() ? torus(extent, cable) : Topology{};
  }
  const bool reduces = kind == NodeKind::star && fields.flag("reduces").value_or(false);
  fields.require("gpus");
  const std::size_t count = gpus.value_or(fields.count("gpus", 1).value_or(1));
  fields.finish();
  if (!problems.empty()) return {};
  if (kind == NodeKind::ring) return ring(count, cable);
  if (kind == NodeKind::star) return star(count, cable, reduces);
  return fully_connected(count, cable);
}

// The keys of the host tree. A cable is needed exactly when something hangs on it.
NodeShape read_host(Fields& fields, Problems& problems) {
  NodeShape shape;
  fields.require("gpus");
  shape.gpus = fields.count("gpus").value_or(0);
  shape.nics = fields.count("nics").value_or(0);
  shape.switches = fields.count("switches").value_or(0);
  shape.sockets = fields.count("sockets").value_or(0);
  shape.board = fields.count("sockets_per_board", 1).value_or(0);
  const auto cable = [&](std::string_view key, bool is_needed) {
    if (is_needed) fields.require(key);
    return read_cable(fields, key, problems);
  };
  const bool has_host = shape.sockets > 0;
  shape.gpu_port = cable("gpu_port", has_host && shape.gpus > 0);
  shape.nic_port = cable("nic_port", has_host && shape.nics > 0);
  shape.uplink = cable("uplink", has_host && shape.switches > 0);
  shape.socket = cable("socket", shape.sockets > 1);
  if (fields.any("memory")) shape.memory = cable("memory", false);
  constexpr std::array<std::string_view, 2> port_kinds{"pcie", "nvlink"};
  if (fields.choice("gpu_port_kind", port_kinds) == std::size_t{1})
    shape.gpu_port_kind = LinkKind::nvlink;
  if (!has_host && (shape.nics > 0 || shape.switches > 0))
    fields.complain("nics", "NICs and PCIe switches need 'sockets' to hang on");
  return shape;
}

NodeShape read_server(Fields& fields, NodeKind kind, Problems& problems) {
  NodeShape shape = read_host(fields, problems);
  if (kind == NodeKind::pcie_tree) return shape;
  fields.require("nvlink");
  shape.nvlink = read_cable(fields, "nvlink", problems);
  if (kind == NodeKind::nvswitch) {
    shape.mesh = Mesh::nvswitch;
    shape.reduces = fields.flag("reduces").value_or(false);
  } else if (kind == NodeKind::hybrid_cube_mesh) {
    shape.mesh = Mesh::hybrid_cube_mesh;
    if (fields.any("gpus") && shape.gpus != 8)
      fields.complain("gpus", fmt::format("a hybrid cube mesh has 8 GPUs, not {}", shape.gpus));
  } else if (kind == NodeKind::fully_connected) {
    shape.mesh = Mesh::groups;
    shape.group = std::max<std::size_t>(1, shape.gpus);
  } else {
    shape.mesh = Mesh::groups;
    fields.require("group");
    shape.group = fields.count("group", 1).value_or(1);
  }
  return shape;
}

}  // namespace

Topology read_node(const Value& table, std::optional<std::size_t> gpus, Problems& problems) {
  Fields fields{table, "[node]", problems};
  fields.require("kind");
  const std::optional<std::size_t> chosen = fields.choice("kind", node_kinds);
  if (!chosen) {
    fields.finish_without_kind();
    return {};
  }
  const auto kind = static_cast<NodeKind>(*chosen);
  const bool is_server =
      kind >= NodeKind::pcie_tree || (kind == NodeKind::fully_connected && fields.any("sockets"));
  if (!is_server)
    return at_place(fields.place_of("gpus"),
                    [&] { return read_plain_node(fields, kind, gpus, problems); });
  const NodeShape shape = read_server(fields, kind, problems);
  if (gpus && *gpus > shape.gpus)
    fields.complain("gpus",
                    fmt::format("the node has {} GPUs; {} were asked for", shape.gpus, *gpus));
  fields.finish();
  if (!problems.empty()) return {};
  const Topology node = at_place(fields.place_of("gpus"), [&] { return make_node(shape); });
  return gpus ? with_fewer_gpus(node, *gpus) : node;
}

namespace {

enum class FabricKind : std::uint8_t {
  none,
  star,
  fat_tree,
  rail_optimized,
  torus2d,
  torus3d,
  dragonfly,
};
constexpr std::array<std::string_view, 7> fabric_kinds{
    "none", "star", "fat_tree", "rail_optimized", "torus2d", "torus3d", "dragonfly"};

double read_oversubscription(Fields& fields) {
  const double ratio = fields.number("oversubscription").value_or(1);
  if (ratio >= 1 && ratio <= 1024) return ratio;
  fields.complain("oversubscription", "'oversubscription' must be from 1 to 1024");
  return 1;
}

std::size_t read_radix(Fields& fields) { return fields.count("radix", 2, 65536).value_or(64); }

Cable trunk_or(Fields& fields, std::string_view key, Cable cable, Problems& problems) {
  return fields.any(key) ? read_cable(fields, key, problems) : cable;
}

Fabric read_fabric_of(FabricKind kind, Fields& fields, Problems& problems) {
  const Cable cable = read_cable(fields);
  const auto reduces = [&] { return fields.flag("reduces").value_or(false); };
  switch (kind) {
    case FabricKind::star:
      return Star{.cable = cable, .reduces = reduces()};
    case FabricKind::fat_tree:
      return FatTree{.cable = cable,
                     .levels = fields.count("levels", 2, 3).value_or(0),
                     .radix = read_radix(fields),
                     .oversubscription = read_oversubscription(fields),
                     .reduces = reduces()};
    case FabricKind::rail_optimized:
      return RailOptimized{.cable = cable,
                           .radix = read_radix(fields),
                           .oversubscription = read_oversubscription(fields),
                           .reduces = reduces()};
    case FabricKind::torus2d:
    case FabricKind::torus3d:
      return TorusFabric{.cable = cable,
                         .trunk = trunk_or(fields, "trunk", cable, problems),
                         .extent = read_extent(fields, kind == FabricKind::torus2d ? 2 : 3)};
    case FabricKind::dragonfly: {
      Dragonfly fly{.cable = cable,
                    .local = trunk_or(fields, "local", cable, problems),
                    .global = trunk_or(fields, "global", cable, problems)};
      constexpr std::size_t most = 4096;
      fly.routers_per_group =
          fields.count("routers_per_group", 1, most).value_or(fly.routers_per_group);
      fly.nodes_per_router =
          fields.count("nodes_per_router", 1, most).value_or(fly.nodes_per_router);
      fly.globals_per_router =
          fields.count("globals_per_router", 1, most).value_or(fly.globals_per_router);
      return fly;
    }
    case FabricKind::none:
      break;
  }
  return {};
}

}  // namespace

Fabric read_fabric(const Value& table, Problems& problems) {
  Fields fields{table, "[fabric]", problems};
  fields.require("kind");
  const std::optional<std::size_t> chosen = fields.choice("kind", fabric_kinds);
  if (!chosen) {
    fields.finish_without_kind();
    return {};
  }
  const auto kind = static_cast<FabricKind>(*chosen);
  Fabric fabric;
  if (kind != FabricKind::none) fabric = read_fabric_of(kind, fields, problems);
  fields.finish();
  return fabric;
}

}  // namespace rehearse
