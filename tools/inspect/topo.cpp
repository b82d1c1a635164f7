// `rehearse topo`: look at a machine, convert it between formats, and follow a route through it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity_text.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/output/output_file.hpp"
#include "topology/files/document.hpp"
#include "topology/formats/catalog.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/formats/io_graph.hpp"
#include "topology/formats/io_nccl_xml.hpp"
#include "topology/formats/io_nvidia_smi.hpp"
#include "topology/formats/io_toml.hpp"
#include "topology/routing.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string cluster, output, format, from, to;
  std::optional<std::int64_t> nodes, gpus_per_node;

  Topology load() const {
    return load_cluster(cluster, {.nodes = counted("--nodes", nodes),
                                  .gpus_per_node = counted("--gpus-per-node", gpus_per_node)});
  }
};

void list_catalog() {
  fmt::print("The catalog (`rehearse topo show NAME` tells more):\n\n");
  for (const CatalogEntry& entry : catalog()) {
    const Value document = parse_toml_document(entry.toml, std::string{entry.name});
    const Value* title = document.find("title");
    fmt::print("  {:<14} {}\n", entry.name, title && title->text() ? *title->text() : "");
  }
}

void print_accelerator(const Accelerator& accelerator) {
  fmt::print("  {}", accelerator.name);
  if (accelerator.memory > Bytes{})
    fmt::print(": {} at {}", to_text(accelerator.memory), to_text(accelerator.memory_bandwidth));
  for (const Accelerator::Peak& peak : accelerator.peaks)
    fmt::print(", {} {}", peak.precision, to_text(peak.rate));
  fmt::print("\n");
}

// Cables that are alike are one line: from kind to kind, how many, what they carry.
void print_links(const Topology& topology) {
  std::map<std::string, std::size_t> counts;
  for (const Link& link : topology.links())
    ++counts[fmt::format("{:<8} {:>6} -> {:<7} {:>10} {:>7}", to_string(link.kind),
                         to_string(topology[link.source].kind),
                         to_string(topology[link.target].kind), to_text(link.bandwidth),
                         to_text(link.latency))];
  fmt::print("\n{:>8}  link\n", "count");
  for (const auto& [text, count] : counts) fmt::print("{:>8}  {}\n", count, text);
}

void show(const Options& options) {
  if (options.cluster.empty()) return list_catalog();
  const Topology topology = options.load();
  std::map<DeviceKind, std::size_t> devices;
  for (const Device& device : topology.devices()) ++devices[device.kind];
  fmt::print("{}: {} ranks, {} nodes, {} devices, {} links\n",
             topology.name.empty() ? options.cluster : topology.name, topology.rank_count(),
             topology.node_count(), topology.devices().size(), topology.links().size());
  for (const auto& [kind, count] : devices) fmt::print("  {} {}\n", count, to_string(kind));
  for (const Accelerator& accelerator : topology.accelerators) print_accelerator(accelerator);
  for (const Protocol& protocol : topology.protocols)
    fmt::print("  protocol {}: {} per message, {:g} of the bytes are payload\n", protocol.name,
               to_text(protocol.overhead), protocol.payload);
  print_links(topology);
  // A matrix wider than a screen helps nobody.
  const std::string matrix = write_nvidia_smi(topology, topology[topology.ranks().front()].node);
  if (std::count(matrix.begin(), matrix.end(), '\n') <= 41)
    fmt::print("\nOne node, as `nvidia-smi topo -m` prints it:\n\n{}", matrix);
}

std::string format_by_ending(const std::string& file) {
  const std::pair<const char*, const char*> endings[] = {
      {".toml", "toml"},       {".xml", "nccl-xml"}, {".txt", "nvidia-smi"},
      {".graphml", "graphml"}, {".dot", "dot"},      {".gv", "dot"}};
  for (const auto& [ending, format] : endings)
    if (file.ends_with(ending)) return format;
  throw InputError(fmt::format(
      "'{}' does not tell its format by its ending; say --to toml, nccl-xml, nvidia-smi, graphml "
      "or dot",
      file));
}

void convert(const Options& options) {
  const std::string format =
      options.format.empty() ? format_by_ending(options.output) : options.format;
  const Topology topology = options.load();
  const std::string text = format == "toml"         ? write_toml(topology)
                           : format == "nccl-xml"   ? write_nccl_xml(topology)
                           : format == "nvidia-smi" ? write_nvidia_smi(topology)
                           : format == "graphml"    ? write_graphml(topology)
                                                    : write_dot(topology);
  write_output(options.output, text);
}

// A rank's number, a device's name, or a name in node 0 ("gpu3" for "node0/gpu3").
DeviceId find_device(const Topology& topology, const std::string& word) {
  std::size_t rank = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), rank);
  if (status == std::errc{} && end == word.data() + word.size()) {
    if (rank >= topology.rank_count())
      throw InputError(fmt::format("rank {} of {} ranks", rank, topology.rank_count()));
    return topology.device_of(static_cast<Rank>(rank));
  }
  std::vector<std::string> names;
  for (std::size_t d = 0; d < topology.devices().size(); ++d) {
    const std::string& name = topology.devices()[d].name;
    if (name == word || name == "node0/" + word) return static_cast<DeviceId>(d);
    if (names.size() < 1000) names.push_back(name);  // hints are for small machines
  }
  throw InputError(fmt::format("no device '{}'{}", word, did_you_mean(word, names)));
}

void route(const Options& options) {
  const Topology topology = options.load();
  const DeviceId from = find_device(topology, options.from), to = find_device(topology, options.to);
  Routing routing{topology};
  const std::vector<LinkId> links = routing.route(from, to);
  Time latency;
  double narrowest = std::numeric_limits<double>::infinity();
  for (const LinkId id : links) {
    const Link& link = topology[id];
    fmt::print("  {:<18} -> {:<18} {:<8} {:>10} {:>7}\n", topology[link.source].name,
               topology[link.target].name, to_string(link.kind), to_text(link.bandwidth),
               to_text(link.latency));
    latency += link.latency;
    narrowest = std::min(narrowest, link.bandwidth.count());
  }
  if (links.empty()) {
    fmt::print("the same device: nothing to cross\n");
    return;
  }
  constexpr std::size_t most = 64;
  const std::size_t equal = routing.equal_routes(from, to, most).size();
  fmt::print("{} hops, {} latency, {} at the narrowest link; {}{} equal route{}\n", links.size(),
             to_text(latency), to_text(BytesPerSecond{narrowest}), equal == most ? "at least " : "",
             equal, equal == 1 ? "" : "s");
}

void add_overrides(Command& command, Options& options) {
  command.option("--nodes", &options.nodes, "How many nodes, instead of the file's number");
  command.option("--gpus-per-node", &options.gpus_per_node, "Use the first GPUs of each node only");
}

}  // namespace

void add_topo_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command topo = program.add("topo", "Show, convert and route through a machine");
  topo.needs_another();

  Command shown = topo.add("show", "Summary and matrix of a machine; alone: the catalog");
  shown.option("cluster", &options->cluster, "Name in the catalog, or a file");
  add_overrides(shown, *options);
  shown.does([options] { show(*options); });

  Command converted = topo.add("convert", "Write a machine in another format");
  converted.option("cluster", &options->cluster, "Name in the catalog, or a file",
                   {.required = true});
  converted.option("-o,--output", &options->output, "File to write, or - for standard output",
                   {.required = true});
  converted.option("--to", &options->format, "Format; by default the file's ending tells",
                   {.choices = {"toml", "nccl-xml", "nvidia-smi", "graphml", "dot"}});
  add_overrides(converted, *options);
  converted.does([options] { convert(*options); });

  Command routed = topo.add("route", "Every hop between two devices");
  routed.option("cluster", &options->cluster, "Name in the catalog, or a file", {.required = true});
  routed.option("from", &options->from, "Device name or rank", {.required = true});
  routed.option("to", &options->to, "Device name or rank", {.required = true});
  add_overrides(routed, *options);
  routed.does([options] { route(*options); });
}

}  // namespace rehearse
