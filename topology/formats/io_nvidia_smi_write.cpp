// Printing a node in the matrix that everyone reads at a glance. Classes follow from routes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "topology/formats/io_nvidia_smi.hpp"
#include "topology/nccl_rates.hpp"
#include "topology/routing.hpp"

namespace rehearse {

namespace {

std::string class_of(const Topology& topology, std::span<const LinkId> route) {
  std::size_t cpus = 0, switches = 0;
  bool all_nvlink = true;
  BytesPerSecond rate{INFINITY};
  for (std::size_t i = 0; i < route.size(); ++i) {
    const Link& link = topology[route[i]];
    all_nvlink = all_nvlink && link.kind == LinkKind::nvlink;
    rate = std::min(rate, nameplate(link));
    if (i == 0) continue;
    cpus += topology[link.source].kind == DeviceKind::cpu;
    switches += topology[link.source].kind == DeviceKind::network_switch;
  }
  if (all_nvlink && cpus == 0) {
    return fmt::format("NV{}", nvlinks_in(topology, topology[route.front()].source, rate));
  }
  if (cpus > 1) return "SYS";
  if (cpus == 1) return "PHB";
  return switches > 1 ? "PXB" : "PIX";
}

}  // namespace

std::string write_nvidia_smi(const Topology& topology, NodeId node) {
  struct Endpoint {
    DeviceId id;
    std::string name;
  };
  std::vector<Endpoint> ends;
  for (const DeviceKind kind : {DeviceKind::gpu, DeviceKind::nic}) {
    std::size_t number = 0;
    for (std::size_t d = 0; d < topology.devices().size(); ++d)
      if (topology.devices()[d].kind == kind && topology.devices()[d].node == node)
        ends.push_back({static_cast<DeviceId>(d),
                        fmt::format("{}{}", kind == DeviceKind::gpu ? "GPU" : "NIC", number++)});
  }
  Routing routing{topology};
  std::string out;
  for (const Endpoint& end : ends) out += "\t" + end.name;
  out += "\n";
  for (const Endpoint& row : ends) {
    out += row.name;
    for (const Endpoint& column : ends) {
      if (row.id == column.id) {
        out += "\tX";
        continue;
      }
      const auto routes = routing.equal_routes(row.id, column.id, 1);
      out += "\t" + (routes.empty() ? "N/A" : class_of(topology, routes.front()));
    }
    out += "\n";
  }
  return out;
}

}  // namespace rehearse
