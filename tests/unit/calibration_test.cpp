// Calibration profiles: read, written back, laid over a machine, and named in reports.
#include "sim/scenario/calibration.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "tests/support/places.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/formats/io_graph.hpp"
#include "topology/formats/io_toml.hpp"

namespace rehearse::calibration_test {
namespace {

std::string seed() {
  std::ifstream file{REHEARSE_SOURCE_DIR "/tests/fuzz/seeds/calibration/a100.toml"};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Calibration, ReadsEveryKeyAndComesBackEqual) {
  const Calibration read = parse_calibration(seed(), "a100.toml");
  EXPECT_EQ(read.name, "node17");
  EXPECT_EQ(read.error, 0.06);
  ASSERT_EQ(read.devices.size(), 1u);
  const AcceleratorChanges& changes = read.devices[0].changes;
  EXPECT_EQ(read.devices[0].accelerator, "A100 SXM 80GB");
  EXPECT_EQ(changes.compute_units, 108u);
  EXPECT_EQ(changes.launch_overhead, Time::picoseconds(4'100'000));
  EXPECT_EQ(changes.memory_ramp, Bytes{2'000'000});
  EXPECT_EQ(changes.communication_share, 0.1);
  EXPECT_EQ(changes.flash_1_efficiency, 0.3);
  EXPECT_EQ(changes.sustained_share, 0.4);
  EXPECT_EQ(changes.elementwise_share, 0.6);
  EXPECT_EQ(changes.elementwise_grad_share, 0.5);
  ASSERT_EQ(read.launches.size(), 1u);
  EXPECT_EQ(read.launches[0].time, 30_us);
  EXPECT_EQ(read.launches[0].exchange_share, 0.2);
  EXPECT_EQ(changes.tiles, (std::vector<Accelerator::Tile>{{256, 128}, {64, 64}}));
  EXPECT_EQ(changes.k_ramp, 100);
  EXPECT_EQ(changes.measured.at(0).shape.n, 12288);
  EXPECT_EQ(parse_calibration(to_toml(read), "again.toml"), read);
}

TEST(Calibration, IsLaidOverTheMachineItWasMeasuredOn) {
  const Calibration calibration = parse_calibration(seed(), "a100.toml");
  const Topology before = load_cluster("dgx-a100");
  const Topology after = apply(calibration, before);
  const Accelerator& device = after.accelerators.front();
  EXPECT_EQ(device.launch_overhead, Time::picoseconds(4'100'000));
  EXPECT_EQ(device.tile_ramp, 3.5);
  EXPECT_EQ(peak_for(Precision::bf16, device).efficiency, 0.86);
  EXPECT_EQ(peak_for(Precision::fp16, device).efficiency,
            peak_for(Precision::fp16, before.accelerators.front()).efficiency);
  EXPECT_EQ(after.links().size(), before.links().size());
  // Both formats that keep everything keep this, too.
  EXPECT_EQ(device.sustained_share, 0.4);
  EXPECT_EQ(device.elementwise_share, 0.6);
  EXPECT_EQ(device.elementwise_grad_share, 0.5);
  EXPECT_EQ(parse_cluster(write_toml(after), "again.toml"), after);
  EXPECT_EQ(parse_graphml(write_graphml(after), "again.graphml"), after);
}

// Two hosts behind a switch: the same overhead for both of a message's links, and once.
TEST(Calibration, MessagesCostTheirEndsWhateverTheirWay) {
  const std::string text = R"(schema = 1
name = "two hosts"
source = "ping-pong"
error = 0.1
[[link]]
kind = "network"
latency = "5us"
overhead = "90us"
piece = "4MiB"
)";
  const Calibration read = parse_calibration(text, "two.toml");
  EXPECT_EQ(parse_calibration(to_toml(read), "again.toml"), read);
  const Topology machine = apply(read, load_cluster("dgx-h100", {.nodes = 2}));
  EXPECT_EQ(machine.library.piece, 4_MiB);  // NCCL's own are shorter
  const Topology before = load_cluster("dgx-h100", {.nodes = 2});
  ASSERT_FALSE(machine.protocols.empty());
  for (std::size_t i = 0; i < machine.protocols.size(); ++i) {
    const Protocol was = i < before.protocols.size() ? before.protocols[i] : Protocol{};
    EXPECT_EQ(machine.protocols[i].network_overhead, was.network_overhead + 90_us);
    EXPECT_EQ(machine.protocols[i].overhead, was.overhead);
  }
}

TEST(Calibration, LaunchesAreThoseOfItsFramework) {
  const Calibration calibration = parse_calibration(seed(), "a100.toml");
  Scenario scenario;
  EXPECT_EQ(apply(calibration, scenario).training.launch_time, Time{});
  scenario.training.framework = 1;  // megatron-lm
  EXPECT_EQ(apply(calibration, scenario).training.launch_time, 30_us);
  EXPECT_EQ(apply(calibration, scenario).training.exchange_share, 0.2);
  scenario.training.launch_time = 7_us;  // what the scenario says itself counts
  EXPECT_EQ(apply(calibration, scenario).training.launch_time, 7_us);
  EXPECT_THROW(
      parse_calibration(seed() + "[[framework]]\nname = \"x\"\nlaunch_time = \"1us\"\n", "f"),
      InputError);
}

TEST(Calibration, AMeasuredKernelTakesWhatItTook) {
  const Topology machine = apply(parse_calibration(seed(), "a"), load_cluster("dgx-a100"));
  const Accelerator& device = machine.accelerators.front();
  Compute work{.flops = Flops{2.0 * 2 * 4096 * 12288 * 4096},
               .gemm = {4096, 12288, 4096, 2},
               .math = Precision::bf16};
  EXPECT_EQ(duration_of(work, device, ShapedRoofline{}), 1700_us);
  work.math = Precision::fp16;  // nobody measured that
  EXPECT_NE(duration_of(work, device, ShapedRoofline{}), 1700_us);
  work.math = Precision::bf16;
  work.gemm.k += 1;
  EXPECT_NE(duration_of(work, device, ShapedRoofline{}), 1700_us);
}

TEST(Calibration, AMeasuredKernelThatIsNoProductTakesWhatItTook) {
  const char* const text =
      "name = \"a\"\nsource = \"b\"\nerror = 0\n[[accelerator]]\nname = \"A100 SXM 80GB\"\n"
      "[[accelerator.measured]]\nprecision = \"fp32\"\ntraffic = 4096\nflops = 12\n"
      "time = \"3us\"\n";
  const Calibration calibration = parse_calibration(text, "a");
  EXPECT_EQ(parse_calibration(to_toml(calibration), "again"), calibration);
  const Topology machine = apply(calibration, load_cluster("dgx-a100"));
  const Accelerator& device = machine.accelerators.front();
  Compute work{.flops = Flops{12}, .traffic = Bytes{4096}};
  EXPECT_EQ(duration_of(work, device, ShapedRoofline{}), 3_us);
  work.traffic += Bytes{1};  // nobody measured that
  EXPECT_NE(duration_of(work, device, ShapedRoofline{}), 3_us);
}

TEST(Calibration, TheNewerMeasurementCounts) {
  using Gemm = Accelerator::MeasuredGemm;
  const Gemm old_one{{Precision::bf16, 1, 1, 1, 1}, 5_us}, new_one{old_one.shape, 4_us},
      other{{Precision::fp32, 9, 9, 9, 1}, 1_us};
  const Accelerator device =
      changed(changed({}, {.measured = {old_one}}), {.measured = {new_one, other}});
  EXPECT_EQ(device.measured, (std::vector<Gemm>{other, new_one}));
}

TEST(Calibration, IsRefusedWhereItDoesNotBelong) {
  const Calibration calibration = parse_calibration(seed(), "a100.toml");
  const auto complaint = [&](const Topology& machine) -> std::string {
    try {
      apply(calibration, machine);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint(load_cluster("dgx-h100")),
            "error: calibration 'node17' is of 'A100 SXM 80GB'; the cluster has 'H100 SXM 80GB'");
  Topology odd = load_cluster("dgx-a100");
  odd.accelerators.front().peaks.pop_back();
  EXPECT_EQ(complaint(odd),
            "error: an efficiency for 'bf16', but 'A100 SXM 80GB' has no such peak");
}

TEST(Calibration, IsNamedInReports) {
  EXPECT_EQ(describe({}), "catalog figures, not calibrated");
  EXPECT_EQ(describe(parse_calibration(seed(), "a100.toml")),
            "node17 (cuBLAS 12.4, 220 GEMMs; stated error 6 %)");
}

}  // namespace
}  // namespace rehearse::calibration_test
