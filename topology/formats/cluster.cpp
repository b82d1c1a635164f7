// Finding a machine's description, following `extends`, and building what it describes.
#include "topology/formats/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "topology/files/text_file.hpp"
#include "topology/formats/catalog.hpp"
#include "topology/formats/cluster_file.hpp"
#include "topology/formats/io_graph.hpp"
#include "topology/formats/io_nccl_xml.hpp"
#include "topology/formats/io_nvidia_smi.hpp"
#include "topology/formats/io_toml.hpp"
#include "topology/formats/libraries.hpp"

namespace rehearse {

namespace {

// A text and what to call it. Catalog entries are called "catalog/dgx-h100.toml".
struct Source {
  std::string text, file;
};

const CatalogEntry* find_entry(std::string_view name) {
  for (const CatalogEntry& entry : catalog())
    if (entry.name == name) return &entry;
  return nullptr;
}

Source source_of(const CatalogEntry& entry) {
  return {std::string{entry.toml}, fmt::format("catalog/{}.toml", entry.name)};
}

// A name of the catalog; or a file, seen from the folder of the file that mentions it; or a
// catalog file by its path, so that "catalog/dgx-h100.toml" works from any folder.
Source find_source(const std::string& name, const Place& mentioned_at) {
  if (const CatalogEntry* entry = find_entry(name)) return source_of(*entry);
  const std::filesystem::path beside = path_beside(name, mentioned_at);
  std::error_code status;
  if (std::filesystem::exists(beside, status))
    return {read_text_file(beside.string()), beside.string()};
  if (name.starts_with("catalog/") && name.ends_with(".toml"))
    if (const CatalogEntry* entry = find_entry(name.substr(8, name.size() - 13)))
      return source_of(*entry);
  if (name.find_first_of("/.") != std::string::npos)
    throw InputError(fmt::format("no such file: '{}'", name));
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog()) names.emplace_back(entry.name);
  throw InputError(fmt::format("unknown cluster '{}'{} (`rehearse topo show` lists the catalog)",
                               name, did_you_mean(name, names)));
}

// The keys that say what a node is; a file has one of them.
constexpr std::array<std::string_view, 5> node_keys{"node", "device", "nccl_xml", "nvidia_smi",
                                                    "graphml"};

// A file that says what a node is does not inherit another answer: `extends = "dgx-h100"` with
// `nccl_xml = "topo.xml"` takes all but the node from the catalog.
void replace_node(Value& under, const Value& document) {
  const auto says = [&](std::string_view key) { return document.find(key) != nullptr; };
  if (std::none_of(node_keys.begin(), node_keys.end(), says)) return;
  std::erase_if(std::get<Table>(under.data), [&](const Member& member) {
    const bool is_node_key =
        std::find(node_keys.begin(), node_keys.end(), member.key) != node_keys.end();
    return (is_node_key || member.key == "link") && !says(member.key);
  });
}

// The document with everything it extends laid under it. A [cluster] of a scenario names its node
// as a string: the same thing as `extends`.
Value resolved(Value document, std::vector<std::string> chain) {
  const bool names_node = document.find("node") && document.find("node")->text();
  const char* key = names_node ? "node" : "extends";
  const Value* base = document.find(key);
  if (!base) return document;
  if (!base->text())
    throw InputError(base->place,
                     fmt::format("'extends' must be a string, not {}", kind_name(*base)));
  const Place place = base->place;
  const Source source = at_place(place, [&] { return find_source(*base->text(), place); });
  const bool is_cycle = std::find(chain.begin(), chain.end(), source.file) != chain.end();
  chain.push_back(source.file);
  if (is_cycle)
    throw InputError(place,
                     fmt::format("'{}' goes in a circle: {}", key, fmt::join(chain, " -> ")));
  Table& members = std::get<Table>(document.data);
  std::erase_if(members, [&](const Member& m) { return m.key == key; });
  Value under = resolved(parse_document(source.text, source.file), chain);
  replace_node(under, document);
  return overlaid(std::move(under), document);
}

// The node that another file describes, whatever its format.
std::optional<Topology> node_from_file(Fields& fields) {
  struct Format {
    const char* key;
    Topology (*parse)(std::string_view, const std::string&);
  };
  constexpr Format formats[] = {
      {"nccl_xml", parse_nccl_xml}, {"nvidia_smi", parse_nvidia_smi}, {"graphml", parse_graphml}};
  std::optional<Topology> node;
  for (const Format& format : formats) {
    const std::optional<std::string> name = fields.text(format.key);
    if (!name || node) continue;
    const Place place = fields.place_of(format.key);
    node = at_place(place, [&] {
      const Source source = find_source(*name, place);
      return format.parse(source.text, source.file);
    });
  }
  return node;
}

Topology node_of(Fields& fields, const ClusterOverrides& overrides, Problems& problems) {
  std::optional<std::size_t> gpus = fields.count("gpus_per_node", 1);
  if (overrides.gpus_per_node) gpus = overrides.gpus_per_node;
  const auto cut_down = [&](const Topology& node) {
    if (!gpus) return node;
    if (*gpus > node.rank_count())
      fields.complain("gpus_per_node", fmt::format("the node has {} GPUs; {} were asked for",
                                                   node.rank_count(), *gpus));
    return with_fewer_gpus(node, *gpus);
  };
  std::vector<std::string_view> given;
  for (const std::string_view key : node_keys)
    if (fields.any(key)) given.push_back(key);
  if (given.size() > 1)
    fields.complain(given[1],
                    fmt::format("'{}' and '{}' both say what a node is", given[0], given[1]));
  if (const std::optional<Topology> other = node_from_file(fields)) return cut_down(*other);
  if (fields.any("device")) return cut_down(read_devices_and_links(fields, problems));
  fields.require("node");
  const Value* table = fields.any("node");
  return table ? read_node(*table, gpus, problems) : Topology{};
}

// A single node keeps to itself, unless only the fabric joins its ranks.
bool needs_fabric(const Topology& node, std::size_t nodes, const Fabric& fabric) {
  if (nodes > 1) return true;
  const bool has_one = !std::holds_alternative<std::monostate>(fabric);
  return has_one && node.links().empty() && node.rank_count() > 1;
}

// Where a host's software is slower than its cable (TCP), the library reaches a share of it.
void limit_network(Topology& machine, const Value& document) {
  const Value* value = document.find("library");
  for (const char* key : {"media", "network"}) value = value ? value->find(key) : nullptr;
  if (!value || !value->text() || machine.library.name.empty()) return;
  const Medium& medium = library_table().media.find(*value->text())->second;
  double most = medium.most.count();
  if (machine.node_count() == 2 && medium.pair.count() > 0)
    most = std::min(most, medium.pair.count() / 2);
  double cable = 0;  // of a host: the narrowest
  for (const Link& link : machine.links())
    if (link.kind == LinkKind::network && (cable == 0 || link.bandwidth.count() < cable))
      cable = link.bandwidth.count();
  double& share = machine.library.efficiency[static_cast<std::size_t>(LinkKind::network)];
  if (most > 0 && cable > 0) share = std::min(share, most / cable);
}

Topology build(const Value& document, const std::string& file, const ClusterOverrides& overrides) {
  Problems problems;
  Fields fields{document, "the file", problems};
  fields.count("schema", 1, 1);
  fields.text("title");
  const std::string name = fields.text("name").value_or("");
  const std::size_t nodes = overrides.nodes.value_or(fields.count("nodes", 1).value_or(1));
  Topology node = node_of(fields, overrides, problems);
  // Readers of other formats put into the name what they had to assume: that must stay visible.
  const bool is_listed = document.find("device") != nullptr;
  if (node.name.empty() || is_listed)
    node.name = name;
  else if (!name.empty())
    node.name = fmt::format("{}, {}", name, node.name);
  if (!is_listed && fields.any("accelerator")) {
    node.accelerators.clear();
    read_accelerators(fields, problems, node);
  }
  if (!is_listed && fields.any("protocol")) {
    node.protocols.clear();
    read_protocols(fields, problems, node);
  }
  if (!is_listed) read_library(fields, problems, node);
  const Value* fabric_table = fields.any("fabric");
  const Fabric fabric = fabric_table ? read_fabric(*fabric_table, problems) : Fabric{};
  const bool is_shape = document.find("node") != nullptr;
  fields.finish();
  throw_if_any(std::move(problems));
  const bool is_joined = needs_fabric(node, nodes, fabric);
  const Place place = overrides.nodes ? Place{file} : fields.place_of("nodes");
  Topology machine = !is_shape && !is_joined ? std::move(node) : at_place(place, [&] {
    return cluster(node, nodes, is_joined ? fabric : Fabric{});
  });
  limit_network(machine, document);
  machine.apply_efficiency();
  return machine;
}

Topology parse_shape(std::string_view text, const std::string& file,
                     const ClusterOverrides& overrides) {
  Value document = parse_document(text, file);
  if (const Value* inner = document.find("cluster")) {
    if (!inner->table())
      throw InputError(inner->place,
                       fmt::format("'cluster' must be a table, not {}", kind_name(*inner)));
    document = named_machine(*inner);
  }
  return build(resolved(std::move(document), {file}), file, overrides);
}

enum class Format { cluster_file, nccl_xml, graphml, nvidia_smi };

Format format_of(std::string_view text, const std::string& file) {
  if (file.ends_with(".toml") || file.ends_with(".json")) return Format::cluster_file;
  if (file.ends_with(".graphml")) return Format::graphml;
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '<')
    return text.find("<graphml") == std::string_view::npos ? Format::nccl_xml : Format::graphml;
  if (file.ends_with(".xml")) return Format::nccl_xml;
  return text.find("GPU0") == std::string_view::npos ? Format::cluster_file : Format::nvidia_smi;
}

}  // namespace

Value named_machine(Value table) {
  if (table.find("extends")) return table;
  const Value* node = table.find("node");
  const bool names_node = node && node->text();
  const bool has_node = std::any_of(node_keys.begin(), node_keys.end(),
                                    [&](std::string_view key) { return table.find(key); });
  if (has_node && !names_node) return table;
  for (Member& member : std::get<Table>(table.data))
    if (member.key == (names_node ? "node" : "name") && member.value.front().text())
      member.key = "extends";
  return table;
}

Topology read_cluster(const Value& table, const std::string& file) {
  Topology topology = build(resolved(named_machine(table), {file}), file, {});
  check_reachable(topology, file);
  return topology;
}

Topology parse_cluster(std::string_view text, const std::string& file,
                       const ClusterOverrides& overrides) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw InputError(Place{file}, "is empty");
  const Format format = format_of(text, file);
  if (format == Format::cluster_file) {
    Topology topology = parse_shape(text, file, overrides);
    check_reachable(topology, file);
    return topology;
  }
  Topology node = format == Format::nccl_xml  ? parse_nccl_xml(text, file)
                  : format == Format::graphml ? parse_graphml(text, file)
                                              : parse_nvidia_smi(text, file);
  if (overrides.gpus_per_node) {
    if (*overrides.gpus_per_node > node.rank_count())
      throw InputError(Place{file}, fmt::format("has {} GPUs; {} were asked for", node.rank_count(),
                                                *overrides.gpus_per_node));
    node = with_fewer_gpus(node, *overrides.gpus_per_node);
  }
  if (overrides.nodes.value_or(1) > 1)
    throw InputError(Place{file}, fmt::format("describes no fabric to join {} nodes; name it in a "
                                              "cluster file with a [fabric]",
                                              *overrides.nodes));
  check_reachable(node, file);
  return node;
}

Topology load_cluster(const std::string& name_or_file, const ClusterOverrides& overrides) {
  if (overrides.nodes == std::size_t{0} || overrides.gpus_per_node == std::size_t{0})
    throw InputError("a cluster needs at least 1 node and 1 GPU in it");
  const Source source = find_source(name_or_file, {});
  return parse_cluster(source.text, source.file, overrides);
}

namespace {

// Which devices can be reached from `begin` along links, or against them.
std::vector<bool> reached_from(const Topology& topology, DeviceId begin, bool forward) {
  const auto links = topology.links();
  const std::size_t size = topology.devices().size();
  std::vector<std::uint32_t> first(size + 1), next(links.size());
  const auto near = [&](const Link& l) { return index(forward ? l.source : l.target); };
  const auto far = [&](const Link& l) { return index(forward ? l.target : l.source); };
  for (const Link& link : links) ++first[near(link) + 1];
  for (std::size_t d = 0; d < size; ++d) first[d + 1] += first[d];
  std::vector<std::uint32_t> place{first.begin(), first.end() - 1};
  for (std::uint32_t l = 0; l < links.size(); ++l) next[place[near(links[l])]++] = l;
  std::vector<bool> reached(size);
  std::vector<std::size_t> open{index(begin)};
  reached[index(begin)] = true;
  while (!open.empty()) {
    const std::size_t d = open.back();
    open.pop_back();
    if (topology.devices()[d].kind == DeviceKind::memory) continue;
    for (std::uint32_t i = first[d]; i < first[d + 1]; ++i) {
      const std::size_t to = far(links[next[i]]);
      if (!reached[to]) open.push_back(to);
      reached[to] = true;
    }
  }
  return reached;
}

}  // namespace

void check_reachable(const Topology& topology, const std::string& file) {
  const auto ranks = topology.ranks();
  if (ranks.empty())
    throw InputError(Place{file}, "describes no GPU and no CPU: nobody could compute");
  for (const bool forward : {true, false}) {
    const std::vector<bool> reached = reached_from(topology, ranks[0], forward);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (reached[index(ranks[r])]) continue;
      const std::size_t from = forward ? 0 : r, to = forward ? r : 0;
      throw InputError(Place{file},
                       fmt::format("rank {} ('{}') cannot be reached from rank {} ('{}')", to,
                                   topology[ranks[to]].name, from, topology[ranks[from]].name));
    }
  }
}

}  // namespace rehearse
