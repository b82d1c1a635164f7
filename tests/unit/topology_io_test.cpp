// Files in and out: what is written reads back as the same machine, and NCCL's and nvidia-smi's own
// files are understood.
#include <gtest/gtest.h>

#include <fstream>

#include "sim/base/quantity_text.hpp"
#include "topology/formats/catalog.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/formats/io_graph.hpp"
#include "topology/formats/io_nccl_xml.hpp"
#include "topology/formats/io_nvidia_smi.hpp"
#include "topology/formats/io_toml.hpp"
#include "topology/routing.hpp"

namespace rehearse::topology_io_test {
namespace {

BytesPerSecond rate_between(const Topology& t, std::string_view from, std::string_view to) {
  for (const Link& link : t.links())
    if (t[link.source].name == from && t[link.target].name == to) return nameplate(link);
  ADD_FAILURE() << "no link from " << from << " to " << to;
  return {};
}

Topology odd_machine() {
  Topology t;
  t.name = "odd \"name\" \\ <&> µ";
  t.accelerators = {{"one", Bytes{123}, BytesPerSecond{1.0 / 3}, {{"fp 32", FlopsPerSecond{0.1}}}},
                    {"two", {}, {}, {}}};
  t.protocols = {{"ll", Time::picoseconds(7), Time::picoseconds(3), Time::picoseconds(5), 1.0 / 3,
                  BytesPerSecond{1e9 / 7}},
                 {}};
  t.library.name = "nccl";
  t.library.version = 223;
  t.library.issue = Time::picoseconds(11);
  t.library.network_launch = Time::picoseconds(13);
  t.library.in_switch = 1.0 / 3;
  t.library.switch_rate = BytesPerSecond{1e11 / 7};
  t.library.far_switch_rate = BytesPerSecond{1e11 / 3};
  t.library.piece = Bytes{17};
  t.library.one_at_a_time = true;
  t.add({.name = "a b", .node = NodeId{3}, .accelerator = 1});
  t.add({.name = "x\"<>&\\", .kind = DeviceKind::network_switch, .reduces = true});
  t.add({.name = "m", .kind = DeviceKind::memory, .node = NodeId{0}});
  const Link link{.source = DeviceId{0},
                  .target = DeviceId{1},
                  .bandwidth = BytesPerSecond{1e10 / 3},
                  .latency = Time::picoseconds(1),
                  .kind = LinkKind::socket};
  t.connect_both(link);
  t.connect(link);
  t.connect({.source = DeviceId{2},
             .target = DeviceId{0},
             .bandwidth = BytesPerSecond{5e-324},
             .latency = Time{}});
  return t;
}

TEST(TopologyFiles, TomlAndGraphMlKeepEverything) {
  std::vector<Topology> machines{odd_machine()};
  for (const CatalogEntry& entry : catalog())
    machines.push_back(load_cluster(std::string{entry.name}));
  machines.push_back(load_cluster("dgx-a100", {.nodes = 3}));
  for (std::size_t i = 0; i < machines.size(); ++i) {
    SCOPED_TRACE(machines[i].name);
    EXPECT_EQ(parse_graphml(write_graphml(machines[i]), "x.graphml"), machines[i]);
    if (i > 0) {  // odd_machine has unreachable ranks, which a cluster file must not have
      EXPECT_EQ(parse_cluster(write_toml(machines[i]), "x.toml"), machines[i]);
    }
    EXPECT_FALSE(write_dot(machines[i]).empty());
  }
  Problems problems;
  const Value document = parse_toml_document(write_toml(machines[0]), "x.toml");
  Fields fields{document, "file", problems};
  EXPECT_EQ(read_devices_and_links(fields, problems), machines[0]);
  EXPECT_TRUE(problems.empty());
}

constexpr const char* nccl_file = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="0">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:c0:00.0" count="6" tclass="0x068000"/>
          <nvlink target="0000:c1:00.0" count="6" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020000" link_speed="8 GT/s" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x0" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:21:00.0" class="0x030200" link_speed="" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1">
        <nvlink target="0000:c0:00.0" count="12" tclass="0x068000"/>
      </gpu>
    </pci>
    <nic><net name="eth0" dev="1" speed="-1" port="1"/></nic>
  </cpu>
</system>
)";

TEST(TopologyFiles, NcclXmlFollowsNcclsRules) {
  const Topology t = parse_nccl_xml(nccl_file, "topo.xml");
  EXPECT_EQ(t.rank_count(), 2u);
  EXPECT_EQ(t.accelerators.at(0).name, "sm80");
  EXPECT_EQ(rate_between(t, "gpu0", "cpu1").count(), 12e9);        // no speed: as PCIe 3
  EXPECT_EQ(rate_between(t, "gpu1", "pcie0").count(), 24e9);       // width 0 is 16
  EXPECT_EQ(rate_between(t, "nic0", "pcie0").count(), 12e9);       // slot below the port's 25
  EXPECT_EQ(rate_between(t, "nic1", "cpu1").count(), 1.25e9);      // speed -1 is 10 Gb/s
  EXPECT_EQ(rate_between(t, "gpu1", "nvswitch0").count(), 240e9);  // 12 x 20
  EXPECT_EQ(rate_between(t, "cpu0", "cpu1").count(), 10e9);        // Skylake
  EXPECT_EQ(parse_nccl_xml(write_nccl_xml(t), "again.xml"), t);
  check_reachable(t, "topo.xml");
}

// Clouds ship templates whose devices are told by their class only.
TEST(TopologyFiles, NcclXmlKnowsDevicesByTheirClass) {
  const Topology t = parse_nccl_xml(
      "<system version=\"1\"><cpu numaid=\"0\">\n"
      "<pci busid=\"ffff:ff:01.0\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">\n"
      "<pci busid=\"0000:10:1c.0\" class=\"0x030200\" link_speed=\"8 GT/s\" link_width=\"16\"/>\n"
      "<pci busid=\"0000:10:1b.0\" class=\"0x020000\" link_speed=\"8 GT/s\" link_width=\"16\"/>\n"
      "</pci></cpu></system>\n",
      "cloud.xml");
  EXPECT_EQ(t.rank_count(), 1u);
  EXPECT_EQ(rate_between(t, "nic0", "pcie0").count(), 12e9);
}

TEST(TopologyFiles, NcclXmlCountsRealNvlinks) {
  const std::string xml = write_nccl_xml(load_cluster("dgx-a100"));
  EXPECT_NE(xml.find("count=\"12\" tclass=\"0x068000\""), std::string::npos) << xml;
}

TEST(TopologyFiles, NcclXmlOfTheCatalogReadsBack) {
  for (const char* name : {"dgx-1", "dgx-a100", "dgx-h100", "p5", "p40-8", "ring-8"}) {
    SCOPED_TRACE(name);
    const Topology machine = load_cluster(name);
    const Topology again = parse_nccl_xml(write_nccl_xml(machine), "x.xml");
    EXPECT_EQ(again.rank_count(), machine.rank_count());
    // From the second time on nothing changes any more.
    EXPECT_EQ(parse_nccl_xml(write_nccl_xml(again), "y.xml"), again);
  }
}

constexpr const char* dgx_matrix =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\t0-31\t0\tN/A\n"
    "GPU1\tNV12\t X \tNV12\tNV12\tPXB\tSYS\t0-31\t0\tN/A\n"
    "GPU2\tNV12\tNV12\t X \tNV12\tSYS\tPIX\t32-63\t1\tN/A\n"
    "GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPHB\t32-63\t1\tN/A\n"
    "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\n"
    "NIC1\tSYS\tSYS\tPIX\tPHB\tSYS\t X \t\t\t\n"
    "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n";

// Everything but the node comes from the catalog; what was assumed stays in the name.
TEST(TopologyFiles, AMatrixMayReplaceTheNodeOfAMachine) {
  const std::string file = testing::TempDir() + "matrix.txt";
  std::ofstream{file} << dgx_matrix;
  const Topology t = parse_cluster(
      "extends = \"dgx-a100\"\nname = \"mine\"\nnodes = 2\n"
      "nvidia_smi = \"" +
          file + "\"\n",
      "mine.toml");
  EXPECT_EQ(t.rank_count(), 8u);
  EXPECT_EQ(t.accelerators.at(0).name, "A100 SXM 80GB");
  EXPECT_EQ(t.protocols.size(), 3u);
  EXPECT_EQ(rate_between(t, "node1/nic1", "leaf1"), 200.0_Gbps);
  EXPECT_EQ(t.name, "mine, nvidia-smi matrix (assumed: NVLink 25 GB/s a link, PCIe 4.0 x16)");
  EXPECT_EQ(load_cluster(file, {.nodes = {}, .gpus_per_node = 3}).rank_count(), 3u);
}

TEST(TopologyFiles, NvidiaSmiMatrixBecomesATree) {
  const Topology t = parse_nvidia_smi(dgx_matrix, "topo.txt");
  EXPECT_EQ(t.rank_count(), 4u);
  EXPECT_EQ(rate_between(t, "gpu3", "nvswitch0").count(), 300e9);
  EXPECT_EQ(rate_between(t, "gpu3", "cpu1").count(), 31.5e9);
  EXPECT_EQ(t.name, "nvidia-smi matrix (assumed: NVLink 25 GB/s a link, PCIe 4.0 x16)");
  const std::string printed = write_nvidia_smi(t);
  EXPECT_EQ(write_nvidia_smi(parse_nvidia_smi(printed, "again.txt")), printed);
  EXPECT_NE(printed.find("GPU2\tNV12\tNV12\tX\tNV12\tSYS\tPIX\n"), std::string::npos) << printed;
  check_reachable(t, "topo.txt");
}

TEST(TopologyFiles, TheDgx1MatrixIsTheFamousOne) {
  const std::string matrix = write_nvidia_smi(load_cluster("dgx-1"));
  EXPECT_NE(matrix.find("GPU0\tX\tNV1\tNV1\tNV2\tNV2\tSYS\tSYS\tSYS\tPIX"), std::string::npos)
      << matrix;
  EXPECT_NE(matrix.find("GPU5\tSYS\tNV2\tSYS\tSYS\tNV1\tX\tNV2\tNV1\t"), std::string::npos)
      << matrix;
}

TEST(TopologyFiles, NetworkxGraphMlIsUnderstood) {
  const Topology t = parse_graphml(R"(<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d1" for="edge" attr.name="latency" attr.type="string"/>
  <key id="d0" for="edge" attr.name="bandwidth" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="left"/><node id="right"/>
    <edge source="left" target="right"><data key="d0">400Gbps</data><data key="d1">2us</data></edge>
  </graph>
</graphml>)",
                                   "x.graphml");
  EXPECT_EQ(t.devices()[1].name, "right");
  EXPECT_EQ(t.links().size(), 2u);
  EXPECT_EQ(t.links()[1].latency, 2_us);
}

TEST(TopologyFiles, JsonIsTheSameTree) {
  const Topology toml = parse_cluster(
      "nodes = 2\n[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\nlatency = \"1us\"\n"
      "[fabric]\nkind = \"star\"\nbandwidth = \"1GB/s\"\nlatency = \"2us\"\n",
      "a.toml");
  const Topology json = parse_cluster(
      R"({"nodes": 2, "node": {"kind": "ring", "gpus": 4, "bandwidth": "10GB/s", "latency": "1us"},
          "fabric": {"kind": "star", "bandwidth": "1GB/s", "latency": "2us"}})",
      "a.json");
  EXPECT_EQ(toml, json);
}

TEST(TopologyFiles, AScenarioNamesItsCluster) {
  const Topology t = parse_cluster(
      "schema = 1\n[model]\nhidden_size = 4096\n[cluster]\nnode = \"catalog/dgx-h100.toml\"\n"
      "nodes = 2\n"
      "fabric = { kind = \"rail_optimized\", bandwidth = \"200Gbps\", latency = \"2us\" }\n",
      "scenario.toml");
  EXPECT_EQ(t.rank_count(), 16u);
  EXPECT_EQ(rate_between(t, "node0/nic0", "leaf0"), 200.0_Gbps);
  EXPECT_EQ(t.protocols.size(), 3u);
}

}  // namespace
}  // namespace rehearse::topology_io_test
