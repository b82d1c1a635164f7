// Reading NCCL's XML: first the tree of elements, then devices in our usual order, then links.
#include "topology/formats/io_nccl_xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "topology/assumed_latency.hpp"
#include "topology/files/xml_file.hpp"
#include "topology/generators.hpp"
#include "topology/nccl_rates.hpp"

namespace rehearse {

namespace {

struct Part {
  DeviceKind kind;
  pugi::xml_node element;  // <cpu> or <pci>, or a <nic> right below a <cpu>
  std::optional<std::size_t> parent;
  DeviceId id{};
};

class NcclXmlReader {
 public:
  NcclXmlReader(std::string_view text, const std::string& file) : xml_{text, file} {}

  Topology read() {
    const pugi::xml_node system = xml_.root();
    if (std::string_view{system.name()} != "system")
      xml_.fail(system,
                fmt::format("NCCL's topology begins with <system>, not <{}>", system.name()));
    for (const pugi::xml_node cpu : xml_.elements(system, {"cpu"})) collect(cpu, {}, 0);
    add_devices();
    connect_tree();
    connect_sockets();
    for (const Part& part : parts_)
      if (part.kind == DeviceKind::gpu) connect_nvlinks(part);
    return std::move(topology_);
  }

 private:
  double number(pugi::xml_node at, const char* name, double otherwise) const {
    const pugi::xml_attribute attribute = at.attribute(name);
    if (!attribute) return otherwise;
    const std::string_view text = attribute.value();
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() ||
        !(value >= -1e9 && value <= 1e9))
      xml_.fail(at, fmt::format("'{}' must be a number, not \"{}\"", name, text));
    return value;
  }

  static DeviceKind kind_of(pugi::xml_node pci) {
    const std::string_view pci_class = pci.attribute("class").value();
    if (pci.child("gpu") || pci_class.starts_with("0x03")) return DeviceKind::gpu;
    if (pci.child("nic") || pci_class.starts_with("0x02")) return DeviceKind::nic;
    return DeviceKind::network_switch;
  }

  void collect(pugi::xml_node element, std::optional<std::size_t> parent, std::size_t depth) {
    if (depth > 32) xml_.fail(element, "nested too deeply");
    if (parts_.size() >= most_devices) xml_.fail(element, "too many devices");
    const bool is_cpu = !parent, is_bare_nic = std::string_view{element.name()} == "nic";
    const DeviceKind kind = is_cpu        ? DeviceKind::cpu
                            : is_bare_nic ? DeviceKind::nic
                                          : kind_of(element);
    const std::size_t me = parts_.size();
    parts_.push_back({kind, element, parent});
    if (is_cpu) {
      for (const pugi::xml_node child : xml_.elements(element, {"pci", "nic"}))
        collect(child, me, depth + 1);
    } else if (is_bare_nic) {
      xml_.elements(element, {"net", "coll"});
    } else {
      for (const pugi::xml_node child : xml_.elements(element, {"pci", "gpu", "nic", "pcilink"})) {
        if (std::string_view{child.name()} != "pci") continue;
        if (kind != DeviceKind::network_switch)
          xml_.fail(child, "a GPU or NIC carries no PCIe devices");
        collect(child, me, depth + 1);
      }
      if (const pugi::xml_node nic = element.child("nic")) xml_.elements(nic, {"net", "coll"});
      if (const pugi::xml_node gpu = element.child("gpu")) xml_.elements(gpu, {"nvlink", "c2c"});
    }
  }

  // GPUs in the order of `dev` where the file has it: that is the order of ranks.
  std::vector<std::size_t> in_order(DeviceKind kind) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].kind == kind) found.push_back(i);
    if (kind == DeviceKind::gpu)
      std::stable_sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
        return number(parts_[a].element.child("gpu"), "dev", 0) <
               number(parts_[b].element.child("gpu"), "dev", 0);
      });
    return found;
  }

  void add_devices() {
    int sm = 0;
    bool has_switch = false;
    for (const Part& part : parts_)
      for (const pugi::xml_node gpu : part.element.children("gpu")) {
        sm = std::max(sm, static_cast<int>(number(gpu, "sm", 0)));
        for (const pugi::xml_node link : gpu.children("nvlink"))
          has_switch |= std::string_view{link.attribute("tclass").value()} == "0x068000";
      }
    topology_.name = "NCCL model (achievable rates)";
    topology_.accelerators.emplace_back().name = fmt::format("sm{}", sm);
    const auto add = [&](DeviceKind kind, std::string_view name) {
      std::size_t count = 0;
      for (const std::size_t i : in_order(kind))
        parts_[i].id = topology_.add(
            {.name = fmt::format("{}{}", name, count++), .kind = kind, .node = NodeId{0}});
    };
    add(DeviceKind::gpu, "gpu");
    add(DeviceKind::nic, "nic");
    if (has_switch)
      nvswitch_ = topology_.add({.name = "nvswitch0",
                                 .kind = DeviceKind::network_switch,
                                 .node = NodeId{0},
                                 .reduces = sm >= 90});
    add(DeviceKind::network_switch, "pcie");
    add(DeviceKind::cpu, "cpu");
    for (const Part& part : parts_)
      if (const char* busid = part.element.attribute("busid").value(); *busid)
        by_busid_.emplace(busid, part.id);
  }

  void connect_both(DeviceId a, DeviceId b, BytesPerSecond rate, Time latency, LinkKind kind) {
    topology_.connect_both(
        {.source = a, .target = b, .bandwidth = rate, .latency = latency, .kind = kind});
  }

  // A NIC's slot never carries more than its port, so the port's speed is laid on the slot.
  BytesPerSecond rate_of(const Part& part) const {
    const pugi::xml_node at = part.element;
    const int width = static_cast<int>(number(at, "link_width", 16));
    if (width < 0 || width > 64) xml_.fail(at, fmt::format("{} is no number of lanes", width));
    const auto slot = nccl_pcie_rate(at.attribute("link_speed").value(), width);
    if (!slot)
      xml_.fail(at, fmt::format("unknown link_speed \"{}\"", at.attribute("link_speed").value()));
    if (part.kind != DeviceKind::nic) return *slot;
    const pugi::xml_node nic = std::string_view{at.name()} == "nic" ? at : at.child("nic");
    double ports = 0;
    for (const pugi::xml_node net : nic.children("net")) {
      const double megabits = number(net, "speed", 10000);
      ports += (megabits <= 0 ? 10000 : megabits) / 8000;
    }
    return ports == 0 ? *slot : std::min(*slot, BytesPerSecond{ports * 1e9});
  }

  void connect_tree() {
    for (const DeviceKind kind : {DeviceKind::gpu, DeviceKind::nic, DeviceKind::network_switch})
      for (const std::size_t i : in_order(kind))
        connect_both(parts_[i].id, parts_[*parts_[i].parent].id, rate_of(parts_[i]),
                     assumed_latency::pcie, LinkKind::pcie);
  }

  void connect_sockets() {
    const std::vector<std::size_t> cpus = in_order(DeviceKind::cpu);
    if (cpus.size() > 64) xml_.fail(parts_[cpus[64]].element, "more than 64 sockets in one node");
    for (std::size_t i = 0; i < cpus.size(); ++i)
      for (std::size_t j = i + 1; j < cpus.size(); ++j) {
        const pugi::xml_node cpu = parts_[cpus[i]].element;
        const BytesPerSecond rate =
            nccl_socket_rate(cpu.attribute("arch").value(), cpu.attribute("vendor").value(),
                             static_cast<int>(number(cpu, "modelid", 0)));
        connect_both(parts_[cpus[i]].id, parts_[cpus[j]].id, rate, assumed_latency::socket,
                     LinkKind::socket);
      }
  }

  DeviceId socket_of(const Part& part) const {
    const Part* at = &part;
    while (at->parent) at = &parts_[*at->parent];
    return at->id;
  }

  void connect_nvlinks(const Part& part) {
    const pugi::xml_node gpu = part.element.child("gpu");
    const BytesPerSecond one = nccl_nvlink_rate(static_cast<int>(number(gpu, "sm", 0)));
    double to_switch = 0, to_socket = 0;
    for (const pugi::xml_node link : gpu.children("nvlink")) {
      const double count = number(link, "count", 1);
      if (!(count >= 1 && count <= 1024)) xml_.fail(link, "'count' must be from 1 to 1024");
      const std::string_view target_class = link.attribute("tclass").value();
      if (target_class == "0x068000" || target_class == "0x068001") {
        (target_class == "0x068000" ? to_switch : to_socket) += count;
        continue;
      }
      const auto target = by_busid_.find(link.attribute("target").value());
      if (target == by_busid_.end() || target->second == part.id)
        xml_.fail(link,
                  fmt::format("nvlink to unknown device \"{}\"", link.attribute("target").value()));
      topology_.connect({.source = part.id,
                         .target = target->second,
                         .bandwidth = count * one,
                         .latency = assumed_latency::nvlink,
                         .kind = LinkKind::nvlink});
    }
    if (to_switch > 0)
      connect_both(part.id, nvswitch_, to_switch * one, assumed_latency::nvswitch,
                   LinkKind::nvlink);
    if (to_socket > 0)
      connect_both(part.id, socket_of(part), to_socket * one, assumed_latency::nvlink,
                   LinkKind::nvlink);
    for (const pugi::xml_node link : gpu.children("c2c")) {
      const double megabytes = number(link, "bw", 0) * number(link, "count", 1);
      if (!(megabytes > 0)) xml_.fail(link, "'bw' times 'count' must be above zero");
      connect_both(part.id, socket_of(part), BytesPerSecond{megabytes * 1e6},
                   assumed_latency::nvlink, LinkKind::nvlink);
    }
  }

  XmlFile xml_;
  std::vector<Part> parts_;
  std::map<std::string, DeviceId> by_busid_;
  DeviceId nvswitch_{};
  Topology topology_;
};

}  // namespace

Topology parse_nccl_xml(std::string_view text, const std::string& file) {
  Topology topology = NcclXmlReader{text, file}.read();
  if (topology.ranks().empty()) throw InputError(Place{file}, "describes no GPU and no CPU");
  return topology;
}

}  // namespace rehearse
