// Explicit devices and links. Cables of equal directions are one [[link]] with `both = true`.
#include "topology/formats/io_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "sim/base/quantity_text.hpp"
#include "topology/formats/accelerator_file.hpp"
#include "topology/formats/libraries.hpp"
#include "topology/generators.hpp"

namespace rehearse {

namespace {

constexpr std::array<std::string_view, 5> device_kinds{"gpu", "nic", "switch", "cpu", "memory"};
constexpr std::array<std::string_view, 6> link_kinds{"nvlink", "pcie",   "network",
                                                     "socket", "memory", "other"};

using Names = std::unordered_map<std::string, DeviceId>;

void read_device(const Value& table, Problems& problems, Topology& topology, Names& names) {
  Fields fields{table, "[[device]]", problems};
  Device device;
  for (const char* key : {"name", "kind"}) fields.require(key);
  device.name = fields.text("name").value_or("");
  if (const auto kind = fields.choice("kind", device_kinds))
    device.kind = static_cast<DeviceKind>(*kind);
  if (const auto node = fields.count("node", 0, most_devices - 1))
    device.node = static_cast<NodeId>(*node);
  device.reduces = fields.flag("reduces").value_or(false);
  const std::size_t accelerators = std::max<std::size_t>(1, topology.accelerators.size());
  device.accelerator =
      static_cast<std::uint16_t>(fields.count("accelerator", 0, accelerators - 1).value_or(0));
  fields.finish();
  if (fields.any("name") && !is_device_name(device.name))
    fields.complain("name", "a device's name needs visible characters and no control characters");
  const std::string name = device.name;
  const DeviceId id = topology.add(std::move(device));
  if (!name.empty() && !names.emplace(name, id).second)
    fields.complain("name", fmt::format("duplicate device name '{}'", name));
}

std::optional<DeviceId> end_of_link(Fields& fields, std::string_view key, const Names& names) {
  fields.require(key);
  const std::optional<std::string> name = fields.text(key);
  if (!name) return {};
  if (const auto at = names.find(*name); at != names.end()) return at->second;
  std::vector<std::string> candidates;
  if (names.size() < 1000)  // a hint is not worth comparing with a million names
    for (const auto& [known, id] : names) candidates.push_back(known);
  std::sort(candidates.begin(), candidates.end());
  fields.complain(key,
                  fmt::format("unknown device '{}'{}", *name, did_you_mean(*name, candidates)));
  return {};
}

void read_link(const Value& table, Problems& problems, Topology& topology, const Names& names) {
  Fields fields{table, "[[link]]", problems};
  Link link;
  const auto source = end_of_link(fields, "source", names);
  const auto target = end_of_link(fields, "target", names);
  for (const char* key : {"bandwidth", "latency"}) fields.require(key);
  const auto bandwidth = fields.bandwidth("bandwidth");
  const auto latency = fields.time("latency");
  if (const auto kind = fields.choice("kind", link_kinds))
    link.kind = static_cast<LinkKind>(*kind);
  else if (!fields.any("kind"))
    link.kind = LinkKind::other;
  const bool both = fields.flag("both").value_or(false);
  fields.finish();
  if (!source || !target || !bandwidth || !latency) return;
  if (*source == *target) {
    fields.complain("target", "a link from a device to itself");
    return;
  }
  link.source = *source;
  link.target = *target;
  link.bandwidth = *bandwidth;
  link.latency = *latency;
  both ? topology.connect_both(link) : topology.connect(link);
}

}  // namespace

void read_accelerators(Fields& fields, Problems& problems, Topology& topology) {
  const Value* given = fields.any("accelerator");
  if (!given) return;
  if (!given->array()) {
    topology.accelerators = {read_accelerator(*given, problems)};
    return;
  }
  for (const Value& table : *given->array())
    topology.accelerators.push_back(read_accelerator(table, problems));
}

void read_protocols(Fields& fields, Problems& problems, Topology& topology) {
  for (const Value* table : fields.tables("protocol")) {
    Fields each{*table, "[[protocol]]", problems};
    Protocol protocol;
    each.require("name");
    protocol.name = each.text("name").value_or("");
    protocol.overhead = each.time("overhead").value_or(Time{});
    protocol.network_overhead = each.time("network_overhead").value_or(Time{});
    protocol.launch = each.time("launch").value_or(Time{});
    protocol.payload = each.number("payload").value_or(1);
    if (!(protocol.payload > 0 && protocol.payload <= 1))
      each.complain("payload", "'payload' must be above 0 and at most 1");
    if (each.any("limit")) protocol.limit = each.bandwidth("limit").value_or(BytesPerSecond{});
    each.finish();
    topology.protocols.push_back(std::move(protocol));
  }
}

namespace {

constexpr std::array<std::string_view, 3> libraries{"none", "nccl", "rccl"};

// "2.23": major and minor, as one number that compares.
int read_version(Fields& fields) {
  const std::optional<std::string> text = fields.text("version");
  if (!text) return 0;
  int major = 0, minor = 0;
  char dot = 0, rest = 0;
  std::istringstream in(*text);
  if (in >> major >> dot >> minor && dot == '.' && !(in >> rest) && major > 0 && major < 100 &&
      minor >= 0 && minor < 100)
    return 100 * major + minor;
  fields.complain("version", "'version' must be like \"2.23\"");
  return 0;
}

// Words of the table of libraries: `media = { nvlink = "nvlink4", network = "efa" }`.
void read_media(Fields& fields, Topology& topology, Problems& problems) {
  const Value* words = fields.table("media");
  if (!words) return;
  Fields of{*words, "media", problems};
  for (std::size_t kind = 0; kind < link_kinds.size(); ++kind) {
    const std::optional<std::string> word = of.text(link_kinds[kind]);
    if (!word) continue;
    const auto& media = library_table().media;
    const auto found = media.find(*word);
    if (found == media.end()) {
      std::vector<std::string> known;
      for (const auto& [name, medium] : media) known.push_back(name);
      of.complain(link_kinds[kind],
                  fmt::format("unknown medium '{}'{}", *word, did_you_mean(*word, known)));
      continue;
    }
    topology.library.efficiency[kind] = found->second.efficiency;
    if (static_cast<LinkKind>(kind) == LinkKind::nvlink) {
      const BytesPerSecond channel = library_table().switch_channel;
      topology.library.switch_rate = found->second.switch_channels * channel;
      topology.library.far_switch_rate = found->second.far_switch_channels * channel;
    }
    if (static_cast<LinkKind>(kind) != LinkKind::network) continue;
    topology.library.one_at_a_time = found->second.one_at_a_time;
    for (Protocol& protocol : topology.protocols)
      protocol.network_overhead += found->second.latency;
  }
  of.finish();
}

}  // namespace

// A share of something, above 0 and at most 1; without the key what was there stays.
void read_share(Fields& fields, std::string_view key, double& share) {
  const std::optional<double> given = fields.number(key);
  if (!given) return;
  if (*given > 0 && *given <= 1)
    share = *given;
  else
    fields.complain(key, fmt::format("'{}' must be above 0 and at most 1", key));
}

void read_library(Fields& fields, Problems& problems, Topology& topology) {
  const Value* table = fields.table("library");
  if (!table) return;
  Fields each{*table, "[library]", problems};
  Library& library = topology.library;
  each.require("name");
  const std::size_t which = each.choice("name", libraries).value_or(0);
  library = which == 0 ? Library{} : library_table().common;
  library.name = which == 0 ? "" : std::string{libraries[which]};
  if (which > 0 && topology.protocols.empty()) topology.protocols = library_table().protocols;
  library.version = read_version(each);
  if (each.any("issue")) library.issue = each.time("issue").value_or(Time{});
  if (each.any("network_launch"))
    library.network_launch = each.time("network_launch").value_or(Time{});
  if (each.any("piece")) library.piece = each.bytes("piece").value_or(Bytes{});
  Topology nobody;  // without a library there are no media, though `extends` may bring them
  read_media(each, which == 0 ? nobody : topology, problems);
  if (each.any("one_at_a_time")) library.one_at_a_time = each.flag("one_at_a_time").value_or(false);
  read_share(each, "in_switch", library.in_switch);
  if (each.any("switch_rate"))
    library.switch_rate = each.bandwidth("switch_rate").value_or(BytesPerSecond{});
  if (each.any("far_switch_rate"))
    library.far_switch_rate = each.bandwidth("far_switch_rate").value_or(BytesPerSecond{});
  if (const Value* shares = each.table("efficiency")) {
    Fields of{*shares, "efficiency", problems};
    for (std::size_t kind = 0; kind < link_kinds.size(); ++kind)
      read_share(of, link_kinds[kind], library.efficiency[kind]);
    of.finish();
  }
  each.finish();
}

Topology read_devices_and_links(Fields& fields, Problems& problems) {
  Topology topology;
  topology.name = fields.text("name").value_or("");
  read_accelerators(fields, problems, topology);
  read_protocols(fields, problems, topology);
  read_library(fields, problems, topology);
  const std::vector<const Value*> devices = fields.tables("device");
  if (devices.size() > most_devices) {
    fields.complain("device", fmt::format("{} devices are more than the {} supported",
                                          devices.size(), most_devices));
    return topology;
  }
  Names names;
  for (const Value* device : devices) read_device(*device, problems, topology, names);
  for (const Value* link : fields.tables("link")) read_link(*link, problems, topology, names);
  return topology;
}

namespace {

void write_protocol(std::string& out, const Protocol& protocol) {
  out += fmt::format("\n[[protocol]]\nname = {}\noverhead = \"{}\"\npayload = {:#}\n",
                     toml_quoted(protocol.name), to_text(protocol.overhead), protocol.payload);
  if (protocol.network_overhead > Time{})
    out += fmt::format("network_overhead = \"{}\"\n", to_text(protocol.network_overhead));
  if (protocol.launch > Time{}) out += fmt::format("launch = \"{}\"\n", to_text(protocol.launch));
  if (protocol.limit.count() > 0) out += fmt::format("limit = \"{}\"\n", to_text(protocol.limit));
}

void write_library(std::string& out, const Library& library) {
  if (library == Library{}) return;
  out += fmt::format("\n[library]\nname = \"{}\"\n", library.name.empty() ? "none" : library.name);
  if (library.version > 0)
    out += fmt::format("version = \"{}.{}\"\n", library.version / 100, library.version % 100);
  out += fmt::format("issue = \"{}\"\nnetwork_launch = \"{}\"\npiece = \"{}B\"\nin_switch = {:#}\n",
                     to_text(library.issue), to_text(library.network_launch), library.piece.count(),
                     library.in_switch);
  if (library.switch_rate.count() > 0)
    out += fmt::format("switch_rate = \"{}\"\n", to_text(library.switch_rate));
  if (library.far_switch_rate.count() > 0)
    out += fmt::format("far_switch_rate = \"{}\"\n", to_text(library.far_switch_rate));
  if (library.one_at_a_time) out += "one_at_a_time = true\n";
  out += "efficiency = { ";
  for (std::size_t kind = 0; kind < link_kinds.size(); ++kind)
    out += fmt::format("{}{} = {:#}", kind == 0 ? "" : ", ", link_kinds[kind],
                       library.efficiency[kind]);
  out += " }\n";
}

void write_device(std::string& out, const Device& device) {
  out += fmt::format("\n[[device]]\nname = {}\nkind = \"{}\"\n", toml_quoted(device.name),
                     to_string(device.kind));
  if (device.node != no_node) out += fmt::format("node = {}\n", index(device.node));
  if (device.accelerator != 0) out += fmt::format("accelerator = {}\n", device.accelerator);
  if (device.reduces) out += "reduces = true\n";
}

}  // namespace

std::string write_toml_machine(const Topology& topology) {
  std::string out = fmt::format("name = {}\n", toml_quoted(topology.name));
  for (const Accelerator& accelerator : topology.accelerators)
    out += write_accelerator(accelerator);
  for (const Protocol& protocol : topology.protocols) write_protocol(out, protocol);
  write_library(out, topology.library);
  return out;
}

std::string write_toml(const Topology& topology) {
  std::string out = "schema = 1\n" + write_toml_machine(topology);
  for (const Device& device : topology.devices()) write_device(out, device);
  const auto links = topology.links();
  for (std::size_t l = 0; l < links.size(); ++l) {
    const Link& link = links[l];
    const bool both = l + 1 < links.size() && is_reverse(link, links[l + 1]);
    out += fmt::format("\n[[link]]\nsource = {}\ntarget = {}\nbandwidth = \"{}\"\n",
                       toml_quoted(topology[link.source].name),
                       toml_quoted(topology[link.target].name), to_text(nameplate(link)));
    out += fmt::format("latency = \"{}\"\nkind = \"{}\"\n", to_text(link.latency),
                       to_string(link.kind));
    if (both) out += "both = true\n", ++l;
  }
  return out;
}

}  // namespace rehearse
