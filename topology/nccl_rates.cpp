// NCCL's tables, and the ways back from a rate to what an XML file must say for it.
#include "topology/nccl_rates.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace rehearse {

namespace {

constexpr double gigabyte = 1e9;

// topo.cc, kvDictPciGen: 100 Mb/s per lane.
constexpr std::array<std::pair<std::string_view, int>, 12> lane_rates{{{"2.5 GT/s", 15},
                                                                       {"5 GT/s", 30},
                                                                       {"5.0 GT/s", 30},
                                                                       {"8 GT/s", 60},
                                                                       {"8.0 GT/s", 60},
                                                                       {"16 GT/s", 120},
                                                                       {"16.0 GT/s", 120},
                                                                       {"32 GT/s", 240},
                                                                       {"32.0 GT/s", 240},
                                                                       {"64 GT/s", 480},
                                                                       {"64.0 GT/s", 480},
                                                                       {"", 60}}};

// topo.h: SM60_NVLINK_BW … SM100_NVLINK_BW. The first capability not above the GPU's own counts.
constexpr std::array<std::pair<int, double>, 6> nvlink_rates{
    {{100, 40.1}, {90, 20.6}, {86, 12.0}, {80, 20.0}, {70, 20.0}, {60, 18.0}}};

// topo.h: ERP_QPI_BW … P9_BW, and the models of topo.cc they belong to.
constexpr std::array<CpuModel, 7> cpu_models{{{"x86_64", "GenuineIntel", 6, 79, 6.0},
                                              {"x86_64", "GenuineIntel", 6, 85, 10.0},
                                              {"x86_64", "GenuineIntel", 6, 143, 22.0},
                                              {"x86_64", "GenuineIntel", 6, 207, 40.0},
                                              {"x86_64", "AuthenticAMD", 143, 49, 16.0},
                                              {"ppc64", "IBM", 0, 0, 32.0},
                                              {"arm64", "ARM", 0, 0, 6.0}}};

constexpr std::array<std::pair<std::string_view, int>, 16> capabilities{{{"GB200", 100},
                                                                         {"B200", 100},
                                                                         {"H100", 90},
                                                                         {"H200", 90},
                                                                         {"H800", 90},
                                                                         {"H20", 90},
                                                                         {"L40", 89},
                                                                         {"L4", 89},
                                                                         {"A100", 80},
                                                                         {"A800", 80},
                                                                         {"A10", 86},
                                                                         {"A40", 86},
                                                                         {"T4", 75},
                                                                         {"V100", 70},
                                                                         {"P100", 60},
                                                                         {"P40", 61}}};

}  // namespace

std::optional<BytesPerSecond> nccl_pcie_rate(std::string_view speed, int width) {
  if (speed.ends_with(" PCIe")) speed.remove_suffix(5);
  for (const auto& [name, lane] : lane_rates)
    if (name == speed) return BytesPerSecond{(width == 0 ? 16 : width) * lane / 80.0 * gigabyte};
  return {};
}

BytesPerSecond nccl_nvlink_rate(int sm) {
  // topo.h keeps 86 apart (Ampere without HBM) and gives everything newer the next lower entry.
  for (const auto& [capability, rate] : nvlink_rates)
    if (sm >= capability) return BytesPerSecond{rate * gigabyte};
  return BytesPerSecond{20.0 * gigabyte};
}

BytesPerSecond nccl_socket_rate(std::string_view arch, std::string_view vendor, int model) {
  double rate = 6.0;  // topo.h: LOC_BW is for none known; QPI_BW 6.0 is its cautious choice
  if (arch == "ppc64") rate = 32.0;
  if (vendor == "AuthenticAMD") rate = 16.0;
  if (vendor == "GenuineIntel")
    rate = model >= 207 ? 40.0 : model >= 143 ? 22.0 : model >= 85 ? 10.0 : 6.0;
  return BytesPerSecond{rate * gigabyte};
}

PcieSlot nccl_slot_for(BytesPerSecond rate) {
  constexpr std::array<std::string_view, 6> speeds{"2.5 GT/s PCIe",  "5.0 GT/s PCIe",
                                                   "8.0 GT/s PCIe",  "16.0 GT/s PCIe",
                                                   "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
  PcieSlot best{speeds[0], 1};
  for (const int width : {1, 2, 4, 8, 16})
    for (const std::string_view speed : speeds) {
      const BytesPerSecond here = *nccl_pcie_rate(speed, width);
      const BytesPerSecond most = *nccl_pcie_rate(best.speed, best.width);
      if (here <= rate && here >= most) best = {speed, width};
    }
  return best;
}

const CpuModel& nccl_cpu_for(BytesPerSecond rate) {
  const CpuModel* best = &cpu_models[0];
  const double wanted = rate.count() / gigabyte;
  for (const CpuModel& model : cpu_models)
    if (std::abs(model.rate - wanted) < std::abs(best->rate - wanted)) best = &model;
  return *best;
}

std::size_t nvlinks_in(const Topology& topology, DeviceId gpu, BytesPerSecond rate) {
  const std::size_t which = topology[gpu].accelerator;
  const std::string name =
      which < topology.accelerators.size() ? topology.accelerators[which].name : "";
  const int sm = sm_of(name);
  // NVLink 1: P100 datasheet, 2 to 4: V100, A100 and H100, 5: B200. Per direction.
  double one = sm >= 100 ? 50e9 : sm == 60 ? 20e9 : 25e9;
  if (name.starts_with("sm")) one = nccl_nvlink_rate(sm).count();
  return static_cast<std::size_t>(std::max(1.0, std::round(rate.count() / one)));
}

int sm_of(std::string_view accelerator) {
  if (accelerator.starts_with("sm")) {
    int sm = 0;
    std::from_chars(accelerator.data() + 2, accelerator.data() + accelerator.size(), sm);
    return sm;
  }
  for (const auto& [name, sm] : capabilities)
    if (accelerator.find(name) != std::string_view::npos) return sm;
  return 0;
}

}  // namespace rehearse
