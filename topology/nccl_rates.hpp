// What NCCL believes a link can carry: the tables of its src/graph/topo.h and topo.cc (2.29), both
// ways round. They are achievable rates in GB/s, a little below the nameplates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topology/topology.hpp"

namespace rehearse {

/// "16.0 GT/s PCIe" and a number of lanes; width 0, as clouds' files have it, means 16.
std::optional<BytesPerSecond> nccl_pcie_rate(std::string_view speed, int width);
/// One NVLink of a GPU of compute capability `sm` (70, 80, 90, 100 …).
BytesPerSecond nccl_nvlink_rate(int sm);
/// Between two sockets, by the attributes of <cpu>.
BytesPerSecond nccl_socket_rate(std::string_view arch, std::string_view vendor, int model);

struct PcieSlot {
  std::string_view speed;
  int width;
};
/// The widest slot that carries no more than `rate`, or the narrowest there is.
PcieSlot nccl_slot_for(BytesPerSecond rate);

struct CpuModel {
  std::string_view arch, vendor;
  int family, model;
  double rate;  // GB/s between two of them
};
/// The CPU whose sockets are joined by the rate nearest to this one.
const CpuModel& nccl_cpu_for(BytesPerSecond rate);

/// How many NVLinks of this GPU make up a rate: at NCCL's rate each where the machine came from
/// NCCL's XML, at the nameplate's elsewhere.
std::size_t nvlinks_in(const Topology& topology, DeviceId gpu, BytesPerSecond rate);

/// The compute capability of a GPU by its name ("H100 SXM 80GB" is 90), 0 when unknown.
int sm_of(std::string_view accelerator);

}  // namespace rehearse
