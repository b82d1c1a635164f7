// Writing NCCL's XML. The format knows slots and numbers of NVLinks, not rates, so a rate becomes
// the slot or the count that NCCL would give that rate, or the nearest below.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "topology/formats/io_nccl_xml.hpp"
#include "topology/nccl_rates.hpp"

namespace rehearse {

namespace {

class Writer {
 public:
  explicit Writer(const Topology& topology)
      : topology_{topology}, node_{topology[topology.ranks().front()].node} {
    for (std::uint32_t d = 0; d < topology.devices().size(); ++d)
      if (is_here(DeviceId{d}))
        busid_[DeviceId{d}] = fmt::format("{:04x}:{:02x}:00.0", d >> 8, d & 255);
    for (const Link& link : topology.links())
      if (is_here(link.source) && is_here(link.target)) links_[link.source].push_back(&link);
  }

  std::string write() {
    out_ = "<system version=\"1\">\n";
    std::vector<DeviceId> sockets;
    for (const auto& [device, busid] : busid_)
      if (topology_[device].kind == DeviceKind::cpu) sockets.push_back(device);
    for (std::size_t i = 0; i < sockets.size(); ++i) write_cpu(sockets[i], i);
    if (sockets.empty()) write_hostless();
    return out_ + "</system>\n";
  }

 private:
  bool is_here(DeviceId d) const { return topology_[d].node == node_; }

  void open(std::size_t depth, std::string_view text) {
    out_ += std::string(2 * depth, ' ');
    out_ += text;
  }

  void open_cpu(std::size_t number, const CpuModel& model) {
    open(1, fmt::format(
                "<cpu numaid=\"{}\" arch=\"{}\" vendor=\"{}\" familyid=\"{}\" modelid=\"{}\">\n",
                number, model.arch, model.vendor, model.family, model.model));
  }

  void write_cpu(DeviceId cpu, std::size_t number) {
    BytesPerSecond to_others{10e9};
    for (const Link* link : links_[cpu])
      if (link->kind == LinkKind::socket) to_others = nameplate(*link);
    open_cpu(number, nccl_cpu_for(to_others));
    for (const Link* link : links_[cpu])
      if (link->kind == LinkKind::pcie) write_pci(link->target, cpu, nameplate(*link), 2);
    open(1, "</cpu>\n");
  }

  // GPUs without a host: NCCL wants one, so they get one socket with a slot each.
  void write_hostless() {
    open_cpu(0, nccl_cpu_for(BytesPerSecond{10e9}));
    for (const auto& [device, busid] : busid_)
      if (topology_[device].kind == DeviceKind::gpu)
        write_pci(device, device, BytesPerSecond{12e9}, 2);
    open(1, "</cpu>\n");
  }

  void write_pci(DeviceId device, DeviceId parent, BytesPerSecond rate, std::size_t depth) {
    if (!written_.emplace(device, true).second) return;
    const DeviceKind kind = topology_[device].kind;
    // A NIC slower than any slot of four lanes is limited by its port, and so is one between slots.
    const PcieSlot slot =
        kind == DeviceKind::nic ? PcieSlot{"64.0 GT/s PCIe", 16} : nccl_slot_for(rate);
    const std::string_view pci_class = kind == DeviceKind::gpu   ? "0x030200"
                                       : kind == DeviceKind::nic ? "0x020000"
                                                                 : "0x060400";
    open(depth, fmt::format("<pci busid=\"{}\" class=\"{}\" link_speed=\"{}\" link_width=\"{}\">\n",
                            busid_[device], pci_class, slot.speed, slot.width));
    if (kind == DeviceKind::gpu) write_gpu(device, depth + 1);
    if (kind == DeviceKind::nic) write_nic(rate, depth + 1);
    if (kind == DeviceKind::network_switch)
      for (const Link* link : links_[device])
        if (link->kind == LinkKind::pcie && link->target != parent &&
            topology_[link->target].kind != DeviceKind::cpu)
          write_pci(link->target, device, nameplate(*link), depth + 1);
    open(depth, "</pci>\n");
  }

  void write_nic(BytesPerSecond rate, std::size_t depth) {
    open(depth, "<nic>\n");
    open(depth + 1,
         fmt::format("<net name=\"net{0}\" dev=\"{0}\" speed=\"{1}\" port=\"1\" gdr=\"1\"/>\n",
                     nics_, std::llround(rate.count() * 8e-6)));
    open(depth, "</nic>\n");
    ++nics_;
  }

  void write_gpu(DeviceId gpu, std::size_t depth) {
    const auto& accelerators = topology_.accelerators;
    const std::size_t which = topology_[gpu].accelerator;
    const std::string name = which < accelerators.size() ? accelerators[which].name : "";
    // Unknown GPUs pass as V100: NCCL wants a number, and the first NVLink of 25 GB/s was Volta's.
    const int sm = sm_of(name) == 0 && !name.starts_with("sm") ? 70 : sm_of(name);
    std::string links;
    for (const Link* link : links_[gpu]) {
      if (link->kind != LinkKind::nvlink) continue;
      const DeviceKind to = topology_[link->target].kind;
      if (to == DeviceKind::cpu) {
        links += fmt::format("{:{}}<c2c bw=\"{}\" count=\"1\"/>\n", "", 2 * depth + 2,
                             std::llround(nameplate(*link).count() * 1e-6));
        continue;
      }
      links += fmt::format("{:{}}<nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>\n", "",
                           2 * depth + 2, busid_[link->target],
                           nvlinks_in(topology_, gpu, nameplate(*link)),
                           to == DeviceKind::gpu ? "0x030200" : "0x068000");
    }
    open(depth,
         fmt::format("<gpu dev=\"{0}\" sm=\"{1}\" rank=\"{0}\" gdr=\"1\"", gpu_number(gpu), sm));
    if (links.empty()) {
      out_ += "/>\n";
      return;
    }
    out_ += ">\n" + links;
    open(depth, "</gpu>\n");
  }

  std::size_t gpu_number(DeviceId gpu) const {
    std::size_t number = 0;
    for (const auto& [device, busid] : busid_)
      number += device < gpu && topology_[device].kind == DeviceKind::gpu;
    return number;
  }

  const Topology& topology_;
  NodeId node_;
  std::map<DeviceId, std::string> busid_;
  std::map<DeviceId, std::vector<const Link*>> links_;
  std::map<DeviceId, bool> written_;
  std::size_t nics_ = 0;
  std::string out_;
};

}  // namespace

std::string write_nccl_xml(const Topology& topology) { return Writer{topology}.write(); }

}  // namespace rehearse
