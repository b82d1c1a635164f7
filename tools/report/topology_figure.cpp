// Boxes in rows, cables between them as lines; cables within a row are arcs below it.
#include "tools/report/topology_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/engine/explain.hpp"
#include "tools/report/legend.hpp"
#include "tools/report/svg.hpp"
#include "tools/report/topology_plan.hpp"

namespace rehearse {

namespace {

constexpr double row_height = 78, box_height = 24, margin = 14, most_box_width = 104;

struct Place {
  double x = 0, y = 0, width = 0;  // its middle
};

// Nodes side by side, many nodes as one box to their right; the fabric over all of it.
std::vector<Place> places_of(const TopologyPlan& plan, double width, double top) {
  const bool has_others = std::any_of(plan.devices.begin(), plan.devices.end(),
                                      [](const ShownDevice& device) { return device.is_nodes; });
  const double others = has_others ? 150 : 0;
  std::map<NodeId, double> begin;
  for (const ShownDevice& device : plan.devices)
    if (device.node != no_node) begin.try_emplace(device.node, 0);
  const double usable = width - others - 2 * margin;
  const double each = usable / std::max<double>(1, static_cast<double>(begin.size()));
  std::size_t n = 0;
  for (auto& [node, x] : begin) x = margin + static_cast<double>(n++) * each;
  std::map<std::pair<std::size_t, NodeId>, std::size_t> count, next;
  for (const ShownDevice& device : plan.devices)
    if (!device.is_nodes) ++count[{device.row, device.node}];
  std::vector<Place> places;
  for (const ShownDevice& device : plan.devices) {
    const double y = top + static_cast<double>(device.row) * row_height + box_height / 2 + 8;
    if (device.is_nodes) {
      places.push_back({width - margin - others / 2 + 8, y, others - 24});
      continue;
    }
    const std::pair key{device.row, device.node};
    const bool in_node = device.node != no_node;
    const double room = in_node ? each - 16 : width - 2 * margin,
                 left = in_node ? begin[device.node] + 8 : margin;
    const double slot = room / static_cast<double>(count[key]);
    places.push_back({left + slot * (static_cast<double>(next[key]++) + 0.5), y,
                      std::min(slot - 6, most_box_width)});
  }
  return places;
}

std::string cable_tip(const TopologyPlan& plan, const ShownCable& cable, bool known) {
  std::string tip = fmt::format("{} to {}: {} {} of {} each way", plan.devices[cable.a].name,
                                plan.devices[cable.b].name, cable.cables,
                                cable.cables == 1 ? "cable" : "cables", readable(cable.bandwidth));
  if (known)
    tip += fmt::format("; the busiest is busy for {:.1f} % of the time, {} in all",
                       100 * cable.busiest, readable(Bytes{std::llround(cable.bytes)}));
  return tip;
}

void draw_cable(Svg& svg, const TopologyPlan& plan, const ShownCable& cable,
                const std::vector<Place>& places, bool known) {
  const Place &a = places[cable.a], &b = places[cable.b];
  const std::string classes =
      fmt::format("k{}{}", class_of(load_paint(cable.busiest)), cable.busiest > 0 ? " th" : "");
  std::string path;
  if (plan.devices[cable.a].row == plan.devices[cable.b].row) {
    const double depth = 14 + std::min(std::abs(b.x - a.x) * 0.09, 30.0);
    path = fmt::format("M{0} {1}C{0} {2} {3} {2} {3} {1}", svg_number(a.x),
                       svg_number(a.y + box_height / 2), svg_number(a.y + box_height / 2 + depth),
                       svg_number(b.x));
  } else {
    const bool down = b.y > a.y;
    path = fmt::format("M{} {}L{} {}", svg_number(a.x),
                       svg_number(a.y + (down ? box_height : -box_height) / 2), svg_number(b.x),
                       svg_number(b.y + (down ? -box_height : box_height) / 2));
  }
  svg.path(path, classes, cable_tip(plan, cable, known));
}

void draw_node_frames(Svg& svg, const TopologyPlan& plan, const std::vector<Place>& places) {
  struct Frame {
    double left = INFINITY, right = 0, top = INFINITY, bottom = 0;
  };
  std::map<NodeId, Frame> frames;
  for (std::size_t d = 0; d < places.size(); ++d) {
    if (plan.devices[d].node == no_node) continue;
    Frame& frame = frames[plan.devices[d].node];
    frame.left = std::min(frame.left, places[d].x - places[d].width / 2);
    frame.right = std::max(frame.right, places[d].x + places[d].width / 2);
    frame.top = std::min(frame.top, places[d].y - box_height / 2);
    frame.bottom = std::max(frame.bottom, places[d].y + box_height / 2);
  }
  for (const auto& [node, frame] : frames) {
    svg.rect(frame.left - 5, frame.top - 16, frame.right - frame.left + 10,
             frame.bottom - frame.top + 24, "ax");
    svg.text(frame.left, frame.top - 5, "mu sm", fmt::format("node {}", index(node)));
  }
}

std::string_view fill_of(const ShownDevice& device) {
  return device.is_nodes || device.count > 1 ? "s8" : device.node == no_node ? "s4" : "s1";
}

// Links of one kind between the same kinds of devices at the same rate.
FigureTable table_of(const Topology& topology, std::span<const Bytes> bytes,
                     std::span<const double> shares) {
  struct Sum {
    std::size_t links = 0, used = 0;
    double most = 0, all = 0, carried = 0;
  };
  std::map<std::tuple<LinkKind, DeviceKind, DeviceKind, double>, Sum> sums;
  for (std::size_t l = 0; l < topology.links().size(); ++l) {
    const Link& link = topology.links()[l];
    Sum& sum = sums[{link.kind, topology[link.source].kind, topology[link.target].kind,
                     link.bandwidth.count()}];
    ++sum.links;
    if (shares.empty()) continue;
    sum.used += shares[l] > 0;
    sum.most = std::max(sum.most, shares[l]);
    sum.all += shares[l];
    sum.carried += static_cast<double>(bytes[l].count());
  }
  FigureTable table{{"link", "from", "to", "each", "links", "used", "busiest", "mean", "bytes"},
                    {}};
  for (const auto& [key, sum] : sums) {
    const auto& [kind, from, to, rate] = key;
    table.rows.push_back({std::string{to_string(kind)}, std::string{to_string(from)},
                          std::string{to_string(to)}, readable(BytesPerSecond{rate}),
                          std::to_string(sum.links), std::to_string(sum.used),
                          fmt::format("{:.1f} %", 100 * sum.most),
                          fmt::format("{:.1f} %", 100 * sum.all / static_cast<double>(sum.links)),
                          readable(Bytes{std::llround(sum.carried)})});
  }
  return table;
}

}  // namespace

Figure topology_figure(const Topology& topology, std::span<const Bytes> link_bytes, Time whole,
                       const FigureSize& size) {
  const std::vector<double> shares = busy_shares(topology, link_bytes, whole);
  const bool known = !shares.empty();
  const TopologyPlan plan = plan_topology(topology, link_bytes, shares);
  Figure figure{"topology", "Machine and load of its links",        "",
                "",         table_of(topology, link_bytes, shares), ""};
  figure.description = fmt::format(
      "{}: {} ranks in {} nodes. {} Where many are alike, one or a few are shown; the table counts "
      "all links.",
      topology.name, topology.rank_count(), std::max<std::size_t>(topology.node_count(), 1),
      known
          ? fmt::format("Cables are coloured by how busy they are: the bytes of {} over what they "
                        "could carry in that time.",
                        readable(whole))
          : "What the links carry is not known here.");
  std::vector<LegendEntry> entries;
  for (const Paint paint :
       {Paint::load_none, Paint::load_low, Paint::load_middle, Paint::load_high})
    entries.push_back({paint, std::string{colours(paint).words}});
  const Legend legend(known ? std::move(entries) : std::vector<LegendEntry>{}, margin, size.width);
  const double top = legend.height() + 18;
  Svg svg(size.width, top + static_cast<double>(plan.rows) * row_height - 18);
  legend.draw(svg);
  const std::vector<Place> places = places_of(plan, size.width, top);
  draw_node_frames(svg, plan, places);
  // Idle cables first, so that busy ones are seen.
  std::vector<ShownCable> cables = plan.cables;
  std::stable_sort(cables.begin(), cables.end(),
                   [](const ShownCable& a, const ShownCable& b) { return a.busiest < b.busiest; });
  for (const ShownCable& cable : cables) draw_cable(svg, plan, cable, places, known);
  for (std::size_t d = 0; d < places.size(); ++d) {
    const ShownDevice& device = plan.devices[d];
    const std::string_view fill = fill_of(device);
    svg.rect(places[d].x - places[d].width / 2, places[d].y - box_height / 2, places[d].width,
             box_height, fill, device.name);
    svg.text(places[d].x, places[d].y + 4, fmt::format("t{} m sm", fill),
             fitted(device.name, places[d].width));
  }
  figure.svg = svg.document(figure.title, figure.description);
  return figure;
}

}  // namespace rehearse
