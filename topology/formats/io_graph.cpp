// GraphML in and out, and DOT out. Read with pugixml: Boost.Graph's reader forgets the ids of
// nodes, which networkx uses as names, tells no places, and recurses as deep as a file nests.
#include "topology/formats/io_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/base/quantity_text.hpp"
#include "topology/files/fields.hpp"
#include "topology/files/xml_file.hpp"
#include "topology/formats/io_toml.hpp"
#include "topology/generators.hpp"

namespace rehearse {

namespace {

using Properties = std::map<std::string, std::string>;

class GraphReader {
 public:
  GraphReader(std::string_view text, const std::string& file) : xml_{text, file}, file_{file} {}

  Topology read() {
    const pugi::xml_node root = xml_.root();
    if (std::string_view{root.name()} != "graphml")
      xml_.fail(root, fmt::format("GraphML begins with <graphml>, not <{}>", root.name()));
    for (const pugi::xml_node key : root.children("key")) {
      const char* name = key.attribute("attr.name").value();
      keys_[key.attribute("id").value()] = *name ? name : key.attribute("id").value();
    }
    const pugi::xml_node graph = root.child("graph");
    if (!graph) xml_.fail(root, "there is no <graph>");
    xml_.elements(root, {"key", "graph", "data", "desc"});
    const auto parts = xml_.elements(graph, {"node", "edge", "data", "desc"});
    read_machine(graph);
    for (const pugi::xml_node part : parts)
      if (std::string_view{part.name()} == "node") add(part);
    is_directed_ = std::string_view{graph.attribute("edgedefault").value()} != "undirected";
    for (const pugi::xml_node part : parts)
      if (std::string_view{part.name()} == "edge") connect(part);
    return std::move(topology_);
  }

 private:
  Properties properties(pugi::xml_node of) const {
    Properties found;
    for (const pugi::xml_node data : of.children("data")) {
      const auto key = keys_.find(data.attribute("key").value());
      if (key == keys_.end())
        xml_.fail(data, fmt::format("unknown key '{}'", data.attribute("key").value()));
      found[key->second] = data.child_value();
    }
    return found;
  }

  // Accelerators and protocols have no place in a graph: one property holds them as TOML.
  void read_machine(pugi::xml_node graph) {
    const Properties found = properties(graph);
    if (const auto name = found.find("name"); name != found.end()) topology_.name = name->second;
    const auto machine = found.find("machine");
    if (machine == found.end()) return;
    Problems problems;
    const Value document = parse_toml_document(machine->second, file_);
    Fields fields{document, "machine", problems};
    topology_.name = fields.text("name").value_or("");
    read_accelerators(fields, problems, topology_);
    read_protocols(fields, problems, topology_);
    read_library(fields, problems, topology_);
    fields.finish();
    for (Problem& problem : problems) problem.place = xml_.place_of(graph);
    throw_if_any(std::move(problems));
  }

  template <class Kind>
  Kind kind_of(pugi::xml_node at, const Properties& of, Kind otherwise, std::size_t count) const {
    const auto given = of.find("kind");
    if (given == of.end()) return otherwise;
    std::vector<std::string> words;
    for (std::size_t k = 0; k < count; ++k) words.emplace_back(to_string(static_cast<Kind>(k)));
    const auto word = std::find(words.begin(), words.end(), given->second);
    if (word == words.end())
      xml_.fail(at, fmt::format("unknown kind '{}'{}", given->second,
                                did_you_mean(given->second, words)));
    return static_cast<Kind>(word - words.begin());
  }

  std::optional<std::size_t> count(pugi::xml_node at, const Properties& of, const char* key,
                                   std::size_t most) const {
    const auto given = of.find(key);
    if (given == of.end()) return {};
    std::size_t value = 0;
    const char* end = given->second.data() + given->second.size();
    const auto [stop, status] = std::from_chars(given->second.data(), end, value);
    if (status != std::errc{} || stop != end || value > most)
      xml_.fail(at, fmt::format("'{}' must be a whole number up to {}, not \"{}\"", key, most,
                                given->second));
    return value;
  }

  void add(pugi::xml_node element) {
    const std::string id = element.attribute("id").value();
    if (id.empty()) xml_.fail(element, "a <node> needs an id");
    if (topology_.devices().size() >= most_devices)
      xml_.fail(element, fmt::format("more than {} devices", most_devices));
    const Properties of = properties(element);
    Device device;
    const auto name = of.find("name");
    device.name = name == of.end() ? id : name->second;
    device.kind = kind_of(element, of, DeviceKind::gpu, 5);
    if (const auto node = count(element, of, "node", most_devices - 1))
      device.node = static_cast<NodeId>(*node);
    device.accelerator =
        static_cast<std::uint16_t>(count(element, of, "accelerator", 65535).value_or(0));
    if (const auto flag = of.find("reduces"); flag != of.end())
      device.reduces = flag->second == "true" || flag->second == "1";
    if (!is_device_name(device.name))
      xml_.fail(element, "a device's name needs visible characters and no control characters");
    if (!names_.emplace(device.name).second)
      xml_.fail(element, fmt::format("duplicate device name '{}'", device.name));
    if (!by_id_.emplace(id, topology_.add(std::move(device))).second)
      xml_.fail(element, fmt::format("duplicate node id '{}'", id));
  }

  DeviceId end_of(pugi::xml_node edge, const char* which) const {
    const auto at = by_id_.find(edge.attribute(which).value());
    if (at == by_id_.end())
      xml_.fail(edge,
                fmt::format("edge with unknown {} '{}'", which, edge.attribute(which).value()));
    return at->second;
  }

  void connect(pugi::xml_node edge) {
    const Properties of = properties(edge);
    Link link{.source = end_of(edge, "source"),
              .target = end_of(edge, "target"),
              .bandwidth = {},
              .latency = {}};
    if (link.source == link.target) xml_.fail(edge, "a link from a device to itself");
    for (const char* key : {"bandwidth", "latency"})
      if (!of.contains(key)) xml_.fail(edge, fmt::format("edge without '{}'", key));
    link.bandwidth =
        at_place(xml_.place_of(edge), [&] { return parse_bandwidth(of.at("bandwidth")); });
    link.latency = at_place(xml_.place_of(edge), [&] { return parse_time(of.at("latency")); });
    if (!(link.bandwidth.count() > 0)) xml_.fail(edge, "bandwidth: must be above zero");
    if (link.latency > longest_latency)
      xml_.fail(edge, "latency: more than 1 s is no latency of a machine");
    link.kind = kind_of(edge, of, LinkKind::other, 6);
    const pugi::xml_attribute own = edge.attribute("directed");
    const bool directed = own ? own.as_bool() : is_directed_;
    directed ? topology_.connect(link) : topology_.connect_both(link);
  }

  XmlFile xml_;
  const std::string& file_;
  bool is_directed_ = true;
  std::map<std::string, std::string> keys_;
  std::unordered_map<std::string, DeviceId> by_id_;
  std::set<std::string> names_;
  Topology topology_;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string data(std::string_view key, std::string_view value) {
  return fmt::format("<data key=\"{}\">{}</data>", key, escaped(value));
}

// The device's number, so that ids are short and never need escaping.
std::string id_of(DeviceId d) { return fmt::format("n{}", index(d)); }

}  // namespace

Topology parse_graphml(std::string_view text, const std::string& file) {
  Topology topology = GraphReader{text, file}.read();
  topology.apply_efficiency();
  return topology;
}

std::string write_graphml(const Topology& topology) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";
  for (const char* key : {"name", "kind", "node", "accelerator", "reduces"})
    out += fmt::format("  <key id=\"{0}\" for=\"node\" attr.name=\"{0}\" attr.type=\"string\"/>\n",
                       key);
  for (const char* key : {"bandwidth", "latency", "link"})
    out += fmt::format("  <key id=\"{}\" for=\"edge\" attr.name=\"{}\" attr.type=\"string\"/>\n",
                       key, key == std::string_view{"link"} ? "kind" : key);
  out += "  <key id=\"machine\" for=\"graph\" attr.name=\"machine\" attr.type=\"string\"/>\n";
  out += "  <graph id=\"G\" edgedefault=\"directed\">\n";
  out += "    " + data("machine", write_toml_machine(topology)) + "\n";
  for (std::size_t d = 0; d < topology.devices().size(); ++d) {
    const Device& device = topology.devices()[d];
    out += fmt::format("    <node id=\"{}\">", id_of(static_cast<DeviceId>(d)));
    out += data("name", device.name) + data("kind", to_string(device.kind));
    if (device.node != no_node) out += data("node", std::to_string(index(device.node)));
    if (device.accelerator) out += data("accelerator", std::to_string(device.accelerator));
    if (device.reduces) out += data("reduces", "true");
    out += "</node>\n";
  }
  for (const Link& link : topology.links())
    out += fmt::format("    <edge source=\"{}\" target=\"{}\">{}{}{}</edge>\n", id_of(link.source),
                       id_of(link.target), data("bandwidth", to_text(nameplate(link))),
                       data("latency", to_text(link.latency)), data("link", to_string(link.kind)));
  return out + "  </graph>\n</graphml>\n";
}

std::string write_dot(const Topology& topology) {
  constexpr std::string_view shapes[] = {"box", "cds", "diamond", "house", "cylinder"};
  const auto quoted = [](std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + '"';
  };
  std::string out = fmt::format("digraph {} {{\n  rankdir=TB;\n", quoted(topology.name));
  for (const Device& device : topology.devices())
    out += fmt::format("  {} [shape={}];\n", quoted(device.name),
                       shapes[static_cast<std::size_t>(device.kind)]);
  const auto links = topology.links();
  for (std::size_t l = 0; l < links.size(); ++l) {
    const Link& link = links[l];
    // A cable with equal directions is drawn once, with two heads.
    const bool both = l + 1 < links.size() && is_reverse(link, links[l + 1]);
    out += fmt::format("  {} -> {} [label=\"{}, {}\"{}];\n", quoted(topology[link.source].name),
                       quoted(topology[link.target].name), to_text(nameplate(link)),
                       to_text(link.latency), both ? ", dir=both" : "");
    l += both;
  }
  return out + "}\n";
}

}  // namespace rehearse
