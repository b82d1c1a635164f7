// From the hardware columns of a measurement to a machine: what is changed of the catalog's, and
// what cannot be built.
#include "tools/accuracy/measured_machine.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"

namespace rehearse::measured_machine_test {
namespace {

MeasuredHardware hardware(std::string gpu, std::string intra, std::size_t nodes, std::size_t gpus) {
  return {.gpu = std::move(gpu), .intra = std::move(intra), .nodes = nodes, .gpus_per_node = gpus};
}

std::size_t count(const Topology& machine, DeviceKind kind) {
  std::size_t found = 0;
  for (const Device& device : machine.devices()) found += device.kind == kind;
  return found;
}

std::string reason_of(const MeasuredHardware& wanted) {
  try {
    machine_of(wanted);
  } catch (const InputError& error) {
    return error.problems().front().message;
  }
  return "built";
}

TEST(MeasuredMachine, HasTheNicsAndRatesOfTheRow) {
  MeasuredHardware wanted = hardware("a100-sxm-40gb", "nvswitch", 2, 8);
  wanted.fabric = "roce";
  wanted.nics_per_node = 16;
  wanted.nic_gbps = 100;
  const Topology machine = machine_of(wanted);
  EXPECT_EQ(machine.rank_count(), 16u);
  EXPECT_EQ(count(machine, DeviceKind::nic), 32u);
  EXPECT_EQ(machine.accelerators.front().name, "A100 SXM 40GB");
  bool crossed = false;
  for (const Link& link : machine.links())
    if (link.kind == LinkKind::network && machine[link.source].kind == DeviceKind::nic) {
      EXPECT_EQ(nameplate(link).count(), 12.5e9);
      EXPECT_LT(link.bandwidth.count(), 12.5e9) << "what NCCL reaches of it";
      EXPECT_EQ(link.latency, 850_ns);
      crossed = true;
    }
  EXPECT_TRUE(crossed);
}

TEST(MeasuredMachine, JoinsGpusAsTheRowSays) {
  const Topology mesh = machine_of(hardware("v100-sxm2-32gb", "nvlink-4gpu-mesh", 1, 4));
  std::size_t direct = 0;
  for (const Link& link : mesh.links()) direct += link.kind == LinkKind::nvlink;
  EXPECT_EQ(direct, 12u) << "each of 4 to 3 others";
  const Topology rack = machine_of(hardware("gb200-nvl72", "nvl72", 18, 4));
  EXPECT_EQ(rack.node_count(), 1u) << "18 trays are one domain";
  EXPECT_EQ(rack.rank_count(), 72u);
}

TEST(MeasuredMachine, EveryGpuOfTheTableCanBeBuilt) {
  for (const char* gpu : {"v100-sxm2-16gb",
                          "v100-sxm2-32gb",
                          "v100-sxm3-32gb",
                          "v100-pcie-32gb",
                          "a100-sxm-40gb",
                          "a100-sxm-80gb",
                          "a100-pcie-40gb",
                          "a100-pcie-80gb",
                          "a800-sxm-80gb",
                          "h100-sxm-80gb",
                          "h100-sxm-96gb-hbm2e",
                          "h200-sxm-141gb",
                          "gh200",
                          "b200-sxm-180gb",
                          "b300-sxm-288gb",
                          "gb200-nvl72",
                          "gb300-nvl72",
                          "mi25",
                          "mi210",
                          "mi300x",
                          "mi325x",
                          "mi355x",
                          "l4",
                          "l40s",
                          "a40",
                          "t4",
                          "p4",
                          "p100-pcie-16gb",
                          "gtx-1080ti",
                          "m40",
                          "titanx-maxwell",
                          "titanx-pascal"})
    EXPECT_EQ(reason_of(hardware(gpu, "", 1, 2)), "built") << gpu;
  for (const char* gpu : {"a40", "a100-pcie-40gb", "l4", "mi25", "t4", "p4"})
    for (const char* intra : {"pcie-gen3-plx", "pcie-gen4", "pcie-host"})
      EXPECT_EQ(reason_of(hardware(gpu, intra, 1, 8)), "built") << gpu << " " << intra;
}

TEST(MeasuredMachine, SaysWhyThereIsNone) {
  EXPECT_EQ(reason_of(hardware("a100-sxm-80g", "nvswitch", 1, 8)),
            "GPU 'a100-sxm-80g' is not in the table of machines; did you mean 'a100-sxm-80gb'?");
  EXPECT_EQ(reason_of(hardware("l40s", "nvswitch", 1, 8)),
            "no machine with 'nvswitch' is known for l40s; its usual one is 'pcie-gen4'");
  EXPECT_EQ(reason_of(hardware("l40s", "nvlink-bridge", 1, 2)),
            "the rate of 'nvlink-bridge' between l40s is not known");
  EXPECT_EQ(reason_of(hardware("h100-sxm-80gb", "nvswitch", 2, 8)),
            "2 nodes, and no fabric between them");
  MeasuredHardware wanted = hardware("h100-sxm-80gb", "nvswitch", 2, 8);
  wanted.fabric = "infinband";
  EXPECT_EQ(reason_of(wanted), "unknown fabric 'infinband'; did you mean 'infiniband'?");
  wanted.fabric = "infiniband";
  EXPECT_EQ(reason_of(wanted), "a fabric 'infiniband' needs nics_per_node and nic_gbps above 0");
  EXPECT_EQ(reason_of(hardware("h100-sxm-80gb", "nvswitch", 1, 16)),
            "the node has 8 GPUs; 16 were asked for");
}

}  // namespace
}  // namespace rehearse::measured_machine_test
