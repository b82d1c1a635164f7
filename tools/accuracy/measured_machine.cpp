// The catalog has most machines as they were sold; a node that was put together otherwise (four
// GPUs all joined, pairs with a bridge, cards without peer access) is described here in full.
#include "tools/accuracy/measured_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

namespace {

struct GpuMachine {
  std::string_view gpu, intra, catalog;
  int pcie = 3;              // generation, where the node is not the catalog's
  double mesh = 0;           // GB/s a direction between each pair of four; 0: nobody builds that
  double bridge = 0;         // GB/s a direction of a bridge between two cards
  const char* changes = "";  // to the catalog's machine
};

// The first row of a GPU is what it usually comes in. Small and old cards, which are no machine
// of today's catalog, are a P40 server with another card; their figures are those of NVIDIA's and
// AMD's data sheets, and of reviews for consumer cards.
constexpr GpuMachine machines[] = {
    {"v100-sxm2-16gb", "nvlink-cube-mesh", "dgx-1", 3, 50, 0, "[accelerator]\nmemory = '16GB'\n"},
    {"v100-sxm2-16gb", "nvlink-summit-triplets", "summit"},
    {"v100-sxm2-32gb", "nvlink-cube-mesh", "dgx-1", 3, 50},  // 2 of 6 NVLinks a pair, 25 GB/s each
    {"v100-sxm2-32gb", "nvlink-summit-triplets", "summit", 3, 50, 0,
     "[accelerator]\nmemory = '32GB'\n"},
    {"v100-sxm3-32gb", "nvswitch", "dgx-2"},
    {"v100-pcie-32gb", "pcie-gen3-plx", "v100-pcie-8"},
    // catalog/p4d.toml has the card, but most of its machines are not Amazon's.
    {"a100-sxm-40gb", "nvswitch", "dgx-a100", 4, 100, 0,  // 4 of 12 NVLinks a pair, 25 GB/s each
     "[accelerator]\nname = 'A100 SXM 40GB'\nmemory = '40GB'\nmemory_bandwidth = '1555GB/s'\n"
     "memory_efficiency = 0.84\nmemory_ramp = '1.1MB'\n"},
    {"a100-sxm-80gb", "nvswitch", "dgx-a100", 4, 100},
    {"a100-pcie-80gb", "pcie-gen4", "a100-pcie-8", 4, 0, 300},  // NVLink bridge, 600 GB/s both ways
    {"a100-pcie-40gb", "pcie-gen4", "a100-pcie-8", 4, 0, 300,
     "[accelerator]\nmemory = '40GB'\nmemory_bandwidth = '1555GB/s'\n"},
    {"a800-sxm-80gb", "nvswitch", "dgx-a100", 4, 0, 0,
     "[node.nvlink]\nbandwidth = '200GB/s'\n"},         // 8 of 12 NVLinks
    {"h100-sxm-80gb", "nvswitch", "dgx-h100", 5, 150},  // 6 of 18 NVLinks a pair
    {"h100-sxm-96gb-hbm2e", "nvswitch", "dgx-h100", 5, 150, 0,
     "[accelerator]\nname = 'H100 SXM 96GB'\nmemory = '96GB'\nmemory_bandwidth = '2.4TB/s'\n"
     "sustained_share = 0.3\n"},  // 500 W of 700, and as much of H100's
    {"h200-sxm-141gb", "nvswitch", "dgx-h200", 5, 150},
    {"gh200", "nvswitch", "dgx-h100", 5, 150, 0,
     "[accelerator]\nmemory = '96GB'\nmemory_bandwidth = '4TB/s'\n"},
    {"b200-sxm-180gb", "nvswitch", "dgx-b200", 5},
    {"b300-sxm-288gb", "nvswitch", "dgx-b300", 5},
    {"gb200-nvl72", "nvl72", "gb200-nvl72", 5},
    {"gb300-nvl72", "nvl72", "gb300-nvl72", 5},
    {"mi300x", "xgmi-mesh", "mi300x-8", 5},
    {"mi325x", "xgmi-mesh", "mi325x-8", 5},
    {"mi355x", "xgmi-mesh", "mi355x-8", 5},
    {"l4", "pcie-gen4", "l4-8", 4},
    {"l40s", "pcie-gen4", "l40s-8", 4},
    {"a40", "pcie-gen4", "a40-8", 4, 0, 56.25},  // NVLink bridge, 112.5 GB/s both ways
    {"t4", "", "t4-4"},                          // servers of 1 to 8, so that none is the usual one
    {"p100-pcie-16gb", "pcie-gen3-plx", "p100-8"},
    {"p4", "pcie-gen3-plx", "p40-8", 3, 0, 0,
     "[accelerator]\nname = 'P4 8GB'\nmemory = '8GB'\nmemory_bandwidth = '192GB/s'\n"
     "compute_units = 20\nmemory_ramp = '130kB'\npeak.fp32 = '5.5TFLOPS'\n"},
    {"m40", "pcie-gen3-plx", "p40-8", 3, 0, 0,
     "[accelerator]\nname = 'M40 12GB'\nmemory = '12GB'\nmemory_bandwidth = '288GB/s'\n"
     "compute_units = 24\nmemory_ramp = '200kB'\npeak.fp32 = '6.8TFLOPS'\n"},
    {"titanx-maxwell", "pcie-gen3-plx", "p40-8", 3, 0, 0,
     "[accelerator]\nname = 'TITAN X (Maxwell) 12GB'\nmemory = '12GB'\n"
     "memory_bandwidth = '336GB/s'\ncompute_units = 24\nmemory_ramp = '240kB'\n"
     "peak.fp32 = '6.1TFLOPS'\n"},
    {"titanx-pascal", "pcie-gen3-plx", "p40-8", 3, 0, 0,
     "[accelerator]\nname = 'TITAN X (Pascal) 12GB'\nmemory = '12GB'\n"
     "memory_bandwidth = '480GB/s'\ncompute_units = 28\nmemory_ramp = '340kB'\n"
     "peak.fp32 = '11TFLOPS'\n"},
    {"gtx-1080ti", "pcie-gen3-plx", "p40-8", 3, 0, 0,
     "[accelerator]\nname = 'GTX 1080 Ti 11GB'\nmemory = '11GB'\nmemory_bandwidth = '484GB/s'\n"
     "compute_units = 28\nmemory_ramp = '340kB'\npeak.fp32 = '11.3TFLOPS'\n"},
    {"mi25", "pcie-gen3-plx", "p40-8", 3, 0, 0,
     "[accelerator]\nname = 'MI25 16GB'\nmemory = '16GB'\nmemory_bandwidth = '484GB/s'\n"
     "compute_units = 64\nmemory_ramp = '340kB'\npeak.fp32 = '12.3TFLOPS'\n"
     "peak.fp16 = '24.6TFLOPS'\n"},
    {"mi210", "pcie-gen4", "p40-8", 4, 50, 50,  // one Infinity Fabric link, 100 GB/s both ways
     "[accelerator]\nname = 'MI210 64GB'\nmemory = '64GB'\nmemory_bandwidth = '1.6TB/s'\n"
     "compute_units = 104\nmemory_ramp = '1.1MB'\npeak.fp32 = '45.3TFLOPS'\n"
     "peak.fp16 = '181TFLOPS'\npeak.bf16 = '181TFLOPS'\n"},
};

// Which medium of topology/formats/libraries.toml a fabric is. A cable with the switch behind it
// takes half of NCCL's hwLat[NET][Ring][LL] of 2.7 us, PCIe off; by TCP 5 us: Larsen et al. 2009.
struct FabricKind {
  std::string_view name, medium;
  bool reduces = false;
};
constexpr FabricKind fabrics[] = {
    {"infiniband", "infiniband"},
    {"infiniband-sharp", "infiniband", true},
    {"roce", "roce"},
    {"rdma", "infiniband"},
    {"omnipath", "omnipath"},
    {"efa", "efa"},
    {"tcpx", "efa"},
    {"tcpxo", "efa"},
    {"tcp", "tcp"},
};

// A node that is not its GPU's usual one.
struct NodeKind {
  std::string_view intra, kind;
  std::size_t gpus, switches;
  double GpuMachine::*link = nullptr;
  std::string_view pcie = "pcie";  // medium of topology/formats/libraries.toml
};
constexpr NodeKind nodes[] = {
    {"nvlink-4gpu-mesh", "fully_connected", 4, 2, &GpuMachine::mesh},
    {"nvlink-bridge", "nvlink_groups", 8, 2, &GpuMachine::bridge},
    {"pcie-gen3-plx", "pcie_tree", 8, 4, nullptr, "pcie-peer3"},
    {"pcie-gen4", "pcie_tree", 8, 2, nullptr, "pcie-peer4"},
    {"pcie-host", "pcie_tree", 8, 0, nullptr,
     "pcie-host"},  // through the sockets, where host memory is
};

template <class Row, std::size_t count>
std::vector<std::string> names_of(const Row (&rows)[count], std::string_view Row::*name) {
  std::vector<std::string> names;
  for (const Row& row : rows)
    if (std::find(names.begin(), names.end(), row.*name) == names.end())
      names.emplace_back(row.*name);
  return names;
}

const GpuMachine& machine_for(const MeasuredHardware& hardware) {
  const GpuMachine* usual = nullptr;
  for (const GpuMachine& row : machines) {
    if (row.gpu != hardware.gpu) continue;
    if (row.intra == hardware.intra) return row;
    if (!usual) usual = &row;
  }
  if (usual) return *usual;
  throw InputError(fmt::format("GPU '{}' is not in the table of machines{}", hardware.gpu,
                               did_you_mean(hardware.gpu, names_of(machines, &GpuMachine::gpu))));
}

// PCIe x16 (PCI-SIG), a quarter of NCCL's hwLat[PCI][Ring][LL] of 1.0 us for each of four links; a
// direct link has its hwLat[NVLINK][Ring][LL] of 0.47 us.
std::string node_text(const NodeKind& node, const GpuMachine& gpu,
                      const MeasuredHardware& hardware) {
  const double port = gpu.pcie == 3 ? 15.75 : gpu.pcie == 4 ? 31.5 : 63;
  const std::size_t gpus = std::max(node.gpus, hardware.gpus_per_node);
  std::string text =
      fmt::format("[node]\nkind = '{}'\ngpus = {}\nnics = {}\nswitches = {}\nsockets = 2\n",
                  node.kind, gpus, hardware.nics_per_node, node.switches);
  if (node.kind == "nvlink_groups") text += "group = 2\n";
  if (node.link)
    text += fmt::format("[node.nvlink]\nbandwidth = '{}GB/s'\nlatency = '470ns'\n", gpu.*node.link);
  for (const char* cable : {"gpu_port", "nic_port", "uplink"})
    text += fmt::format("[node.{}]\nbandwidth = '{}GB/s'\nlatency = '250ns'\n", cable, port);
  // Two QPI links of an E5, or three UPI links of a Xeon SP: Intel ARK, as in the catalog.
  return text + fmt::format("[node.socket]\nbandwidth = '{}GB/s'\nlatency = '100ns'\n",
                            gpu.pcie == 3 ? 38.4 : 67.2);
}

std::string changed_node(const GpuMachine& gpu, const MeasuredHardware& hardware) {
  // A kernel's row knows no node; any will do.
  if (gpu.intra == hardware.intra || hardware.intra.empty()) {
    const std::size_t trays = gpu.intra == "nvl72" ? 18 : 1;
    return hardware.nics_per_node == 0
               ? std::string{}
               : fmt::format("[node]\nnics = {}\n", hardware.nics_per_node * trays);
  }
  for (const NodeKind& node : nodes) {
    if (node.intra != hardware.intra) continue;
    if (node.link && gpu.*node.link == 0)
      throw InputError(
          fmt::format("the rate of '{}' between {} is not known", hardware.intra, hardware.gpu));
    return node_text(node, gpu, hardware);
  }
  throw InputError(fmt::format("no machine with '{}' is known for {}; its usual one is '{}'",
                               hardware.intra, hardware.gpu,
                               gpu.intra.empty() ? "pcie-host" : gpu.intra));
}

std::string fabric_text(const MeasuredHardware& hardware) {
  if (hardware.fabric == "none") return {};
  for (const FabricKind& fabric : fabrics) {
    if (fabric.name != hardware.fabric) continue;
    if (hardware.nics_per_node == 0 || hardware.nic_gbps == 0)
      throw InputError(
          fmt::format("a fabric '{}' needs nics_per_node and nic_gbps above 0", hardware.fabric));
    return fmt::format("[fabric]\nbandwidth = '{}Gbps'\nlatency = '{}'\n{}", hardware.nic_gbps,
                       fabric.name == "tcp" ? "5us" : "850ns",
                       fabric.reduces ? "reduces = true\n" : "");
  }
  throw InputError(
      fmt::format("unknown fabric '{}'{}", hardware.fabric,
                  did_you_mean(hardware.fabric, names_of(fabrics, &FabricKind::name))));
}

// Which media the machine's links are, where they are not the catalog's.
std::string media_text(const GpuMachine& gpu, const MeasuredHardware& hardware) {
  std::string text;
  for (const FabricKind& fabric : fabrics)
    if (fabric.name == hardware.fabric) text += fmt::format("network = '{}'\n", fabric.medium);
  for (const NodeKind& node : nodes) {
    if (node.intra != hardware.intra) continue;
    text += fmt::format("pcie = '{}'\n", node.pcie);
    if (node.link == &GpuMachine::bridge)
      text += fmt::format("nvlink = '{}'\n", gpu.gpu == "mi210" ? "xgmi" : "nvlink-bridge");
  }
  return text.empty() ? text : "[library.media]\n" + text;
}

}  // namespace

std::string machine_text(const MeasuredHardware& hardware) {
  const GpuMachine& gpu = machine_for(hardware);
  std::size_t nodes_in_all = hardware.nodes, gpus = hardware.gpus_per_node;
  if (hardware.intra == "nvl72") {  // a row's node is a tray; ours is the rack of up to 18
    const std::size_t racks = hardware.fabric == "none" ? 1 : (nodes_in_all + 17) / 18;
    if (nodes_in_all % racks != 0)
      throw InputError(
          fmt::format("{} trays are not the same number in each of {} racks", nodes_in_all, racks));
    gpus *= nodes_in_all / racks;
    nodes_in_all = racks;
  } else if (hardware.fabric == "none" && nodes_in_all > 1) {
    throw InputError(fmt::format("{} nodes, and no fabric between them", nodes_in_all));
  }
  return fmt::format("extends = '{}'\nnodes = {}\ngpus_per_node = {}\n{}{}{}{}", gpu.catalog,
                     nodes_in_all, gpus, gpu.changes, changed_node(gpu, hardware),
                     fabric_text(hardware), media_text(gpu, hardware));
}

Topology machine_of(const MeasuredHardware& hardware) {
  return parse_cluster(machine_text(hardware), "machine.toml");
}

}  // namespace rehearse
