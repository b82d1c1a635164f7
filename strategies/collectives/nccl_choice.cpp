// The tables are those of src/graph/tuning.cc at the tags named; indices as there. Facts about them
// and what NCCL does with them: strategies/DECISIONS.md, "Collectives".
#include "strategies/collectives/nccl_choice.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "strategies/collectives/blocks.hpp"
#include "strategies/collectives/nccl_limits.hpp"
#include "topology/nccl_rates.hpp"

namespace rehearse {

namespace {

enum Way : std::size_t { tree, ring, nvls, nvls_tree, collnet, ways };
constexpr std::array<std::string_view, ways> way_names{"tree", "ring", "nvls", "nvls_tree",
                                                       "collnet"};
constexpr std::array<std::string_view, 3> protocol_names{"ll", "ll128", "simple"};
using ByProtocol = std::array<double, 3>;

struct Latencies {
  std::array<ByProtocol, ways> base, nvlink, pci, net;
};
struct Constants {
  int from;  // version
  Latencies latency;
};

// Oldest first; a version has the constants of the last one not after it.
constexpr Constants versions[] = {
    {0,  // v2.5.6-1, lines 60-77
     {{{{4.4, 4.4, 0}, {3.6, 3.6, 8.4}}},
      {{{0.5, 1.9, 28}, {0.4, 2.5, 5.7}}},
      {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}},
      {{{5.0, 7.5, 50}, {0.9, 2.5, 6.6}}}}},
    {206,  // v2.7.8-1, lines 56-74
     {{{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}, {}, {}, {4.4, 4.4, 0}}},
      {{{0.52, 1.2, 28}, {0.47, 1.9, 3.4}, {}, {}, {0.5, 1.2, 4.0}}},
      {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}, {}, {}, {1.0, 1.9, 5.5}}},
      {{{5.0, 8.5, 50}, {2.7, 4.0, 9.6}, {}, {}, {5.0, 5.0, 10.7}}}}},
    {210,  // v2.12.12-1, lines 56-75
     {{{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}, {}, {}, {4.4, 4.4, 0}}},
      {{{0.52, 1.25, 28}, {0.47, 1.9, 3.4}, {}, {}, {0.5, 1.2, 8.0}}},
      {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}, {}, {}, {1.0, 1.9, 8.0}}},
      {{{5.0, 8.5, 28}, {2.7, 4.0, 28}, {}, {}, {5.0, 5.0, 10.7}}}}},
    {216,  // v2.18.3-1, lines 56-105
     {{{{6.8, 14.0, 0}, {6.6, 14.0, 8.4}, {0, 0, 23}, {0, 0, 23}, {6.8, 14.0, 0}}},
      {{{0.6, 1.25, 4}, {0.6, 1.9, 3.4}, {}, {}, {0, 0, 4.75}}},
      {{{1.0, 1.9, 6}, {1.0, 2.5, 5.7}, {}, {}, {0, 0, 8.0}}},
      {{{5.0, 8.5, 14}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 19}, {0, 0, 14}}}}},
    {222,  // v2.23.4-1, lines 56-80
     {{{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {}}},
      {{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 2.8}}},
      {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {}, {}, {0, 0, 2.8}}},
      {{{5.0, 8.5, 14}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 14}, {0, 0, 30}}}}},
    {228,  // v2.29.3-1: as before, but for the network of NVLSTree
     {{{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {}}},
      {{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 2.8}}},
      {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {}, {}, {0, 0, 2.8}}},
      {{{5.0, 8.5, 14}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 30}}}}},
};

const Latencies& latencies_of(int version) {
  const Constants* found = &versions[0];
  for (const Constants& each : versions)
    if (version == 0 || each.from <= version) found = &each;
  return found->latency;
}

// v2.23.4-1 line 86, and 2.29 for Blackwell: by generation, and 1, 2 or more nodes.
double most_in_ll(int sm, std::size_t nodes) {
  constexpr double rates[4][3] = {
      {39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}};
  const std::size_t generation = sm >= 100 ? 3 : sm >= 90 ? 2 : sm >= 80 ? 1 : 0;
  return rates[generation][std::min<std::size_t>(nodes, 3) - 1];
}

// v2.23.4-1 lines 435-439: what trees lose at a size, by log2 of its 64-byte lines.
constexpr std::size_t corrected = 23;
constexpr double tree_correction[3][corrected] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

double steps_of(CollectiveKind kind, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  if (kind == CollectiveKind::all_reduce) return 2 * (n - 1);
  if (kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather) return n - 1;
  return n;
}

// Algorithm bandwidth in GB/s.
double bandwidth(const NcclGraph& graph, CollectiveKind kind, Way way, std::size_t protocol) {
  const bool in_trees = way == tree || way == nvls_tree;
  double bus = graph.intra;
  // Between two nodes a tree sends half of what it sends within them.
  if (graph.nodes > 1) bus = std::min(bus, graph.nic * (in_trees && graph.nodes == 2 ? 2 : 1));
  const double ll = most_in_ll(graph.sm, graph.nodes);
  if (way == ring && protocol == 0) bus = std::min(ll, bus * 0.5);
  if (way == ring && protocol == 1) bus *= 0.92;
  if (way == tree) bus *= 0.92;
  if (way == tree && protocol == 0) bus = std::min(bus / 3.8, ll);
  if (way == tree && protocol == 1) bus *= graph.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0;
  if (way == ring) return bus * static_cast<double>(graph.ranks) / steps_of(kind, graph.ranks);
  if (way == nvls || way == nvls_tree) return bus * 5.0 / 6.0;
  return bus * 0.5;
}

double latency(int version, const NcclGraph& graph, CollectiveKind kind, Way way,
               std::size_t protocol) {
  const Latencies& table = latencies_of(version);
  const auto nodes = static_cast<double>(graph.nodes), ranks = static_cast<double>(graph.ranks);
  double near = (graph.nvlink ? table.nvlink : table.pci)[way][protocol];
  double far = table.net[graph.ranks == graph.nodes ? tree : way][protocol];
  far += graph.nic_latency * (protocol == 2 ? 2 : 1);  // Simple flushes
  const double base = table.base[way][protocol], doublings = std::floor(std::log2(nodes));
  switch (way) {
    case ring: {
      const double steps = steps_of(kind, graph.ranks);
      if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce)
        return base + (graph.nodes == 1 ? near : steps * std::max(near, far));
      const double between =
          graph.nodes == 1 ? 0 : (kind == CollectiveKind::all_reduce ? 2 : 1) * (nodes - 1);
      if (graph.nodes > 1) near = std::max(near, protocol == 2 ? 3.0 : 1.0);  // of its proxy
      return base + (steps - between) * near + between * far;
    }
    case tree:
      return base + 2 * ((ranks / nodes - 1) * near + doublings * far);
    case nvls_tree:
      return base + near + 2 * doublings * far;
    case collnet:
      return base + 2 * (ranks / nodes - 1) * near + far;
    default:
      return base + near;
  }
}

bool speaks_ll128(const NcclGraph& graph) {
  return graph.nvlink && graph.sm >= 70 && graph.sm != 75 && graph.sm != 86 && graph.sm != 89;
}

// NCCL knows what a card says of itself, not that the host's sockets reach less than half of it.
double rate_as_told(const Link& link) {
  const double reached = link.bandwidth.count(), rated = link.rated.count();
  return link.kind == LinkKind::network && reached < rated / 2 ? rated : reached;
}

// Of a GPU that nobody knows, Ampere's; AMD's are as late as Hopper.
int capability_of(const Topology& topology, DeviceId gpu) {
  const std::size_t which = topology[gpu].accelerator;
  if (which >= topology.accelerators.size()) return 80;
  const std::string& name = topology.accelerators[which].name;
  const int sm = sm_of(name);
  if (sm > 0) return sm;
  return name.starts_with("MI3") ? 90 : 80;
}

}  // namespace

NcclGraph nccl_graph(const CollectiveShape& shape, const Topology& topology) {
  NcclGraph graph;
  const auto blocks = blocks_by_node(topology, shape.group);
  graph.ranks = shape.group.size();
  graph.nodes = blocks.size();
  const DeviceId gpu = topology.device_of(blocks.front().front());
  const NodeId node = topology[gpu].node;
  graph.sm = capability_of(topology, gpu);
  double nvlink = 0, pcie = 0, network = 0, all_nics = 0;
  std::size_t nics = 0, gpus = 0;
  for (const Device& device : topology.devices())
    gpus += device.kind == DeviceKind::gpu && device.node == node;
  for (const Link& link : topology.links()) {
    const Device& source = topology[link.source];
    const double rate = rate_as_told(link) * 1e-9;
    if (link.source == gpu && link.kind == LinkKind::nvlink) nvlink += rate;
    if (link.source == gpu && link.kind == LinkKind::pcie) pcie += rate;
    if (link.source == gpu && link.kind == LinkKind::network) network += rate;
    if (source.node != node || node == no_node) continue;
    if (topology[link.target].reduces && link.source == gpu) graph.in_switch = true;
    if (source.kind != DeviceKind::nic || link.kind != LinkKind::network) continue;
    ++nics;
    all_nics += rate;
  }
  graph.nvlink = nvlink > 0;
  graph.intra = graph.nvlink ? nvlink : pcie;
  // A rank uses the NICs of its own, one or more.
  const auto used = static_cast<double>(std::min(
      nics,
      blocks.front().size() * std::max<std::size_t>(1, nics / std::max<std::size_t>(1, gpus))));
  graph.nic = nics == 0 ? network : all_nics * used / static_cast<double>(nics);
  if (graph.intra == 0) graph.intra = graph.nic;
  return graph;
}

std::optional<double> nccl_time(int version, const NcclGraph& graph, CollectiveKind kind,
                                std::string_view algorithm, std::string_view protocol, Bytes size) {
  const auto way = static_cast<Way>(std::find(way_names.begin(), way_names.end(), algorithm) -
                                    way_names.begin());
  const auto which = static_cast<std::size_t>(
      std::find(protocol_names.begin(), protocol_names.end(), protocol) - protocol_names.begin());
  if (way == ways || which == protocol_names.size()) return std::nullopt;
  if ((way == nvls || way == nvls_tree || way == collnet) && which != 2) return std::nullopt;
  if (way == tree && kind != CollectiveKind::all_reduce) return std::nullopt;
  if (which == 1 && !speaks_ll128(graph)) return std::nullopt;
  double rate = bandwidth(graph, kind, way, which);
  double wait = latency(version, graph, kind, way, which);
  if (rate <= 0) return std::nullopt;
  const auto bytes = static_cast<std::uint64_t>(size.count());
  const auto lines = static_cast<std::size_t>(std::bit_width(bytes >> 6));  // log2 + 1
  if (way == tree && lines > 0 && lines <= corrected) rate *= tree_correction[which][lines - 1];
  if (way == ring && which == 2 && graph.nodes > 1 && kind == CollectiveKind::all_reduce)
    wait *= graph.sm < 80 ? 1.9 : 1.4;
  return wait + static_cast<double>(size.count()) / (1000 * rate);
}

double nccl_most_in_ll(const CollectiveShape& shape, const Topology& topology) {
  const DeviceId gpu = topology.device_of(shape.group.front());
  return most_in_ll(capability_of(topology, gpu), blocks_by_node(topology, shape.group).size());
}

bool library_has(const Library& library, std::string_view algorithm) {
  if (library.name.empty() || algorithm == "pairwise") return true;
  const bool in_switch = algorithm == "nvls" || algorithm == "nvls_tree" || algorithm == "collnet";
  if (library.name == "rccl" && in_switch) return false;
  return std::find(way_names.begin(), way_names.end(), algorithm) != way_names.end();
}

}  // namespace rehearse
