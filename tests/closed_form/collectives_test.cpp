// Collectives against the formulas of the textbooks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::collectives_test {
namespace {

constexpr Cable cable{50.0_GBps, 2_us};

Time step_of(Bytes chunk, Cable over = cable) {
  return over.latency + Time::round(chunk / over.bandwidth);
}

TEST(Ring, AllReduceTakes2NMinus1Steps) {
  for (std::int64_t n = 2; n <= 64; ++n) {
    const Bytes chunk{1'000'004};
    const Time expected = 2 * (n - 1) * step_of(chunk);
    EXPECT_EQ(time_of("ring", CollectiveKind::all_reduce, ring(static_cast<std::size_t>(n), cable),
                      n * chunk, Detail::transfers, 1),
              expected)
        << "2 (n-1) (alpha + S / (n beta)) with n = " << n;
  }
}

TEST(Ring, BothDirectionsHalveTheBytes) {
  const Bytes chunk = 1_MiB;
  EXPECT_EQ(time_of("ring", CollectiveKind::all_reduce, ring(8, cable), 8 * chunk),
            14 * step_of(Bytes{chunk.count() / 2}))
      << "a ring with links both ways carries two rings";
}

TEST(Ring, ReduceScatterAndAllGatherMakeAllReduce) {
  for (const std::size_t n : {2, 3, 5, 8, 13, 32}) {
    for (const Bytes size : {0_B, 4_B, 1_KiB, Bytes{999'999}, 64_MiB}) {
      const Topology machine = star(n, cable);
      EXPECT_EQ(time_of("ring", CollectiveKind::reduce_scatter, machine, size) +
                    time_of("ring", CollectiveKind::all_gather, machine, size),
                time_of("ring", CollectiveKind::all_reduce, machine, size))
          << n << " ranks, " << size.count() << " B";
    }
  }
}

TEST(Ring, EightBytesCostLatencyOfEveryStep) {
  for (const std::int64_t n : {2, 16, 64})
    EXPECT_EQ(time_of("ring", CollectiveKind::all_reduce, ring(static_cast<std::size_t>(n), cable),
                      Bytes{8}, Detail::transfers, 1),
              2 * (n - 1) * step_of(4_B));
}

/// The best time in any of the machine's protocols, as `bench` shows it.
Time best_time(std::string_view name, const Topology& machine, Bytes size) {
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveRehearsal rehearsal(algorithm(name), shape_of(CollectiveKind::all_reduce, machine),
                                routing, Detail::folded);
  Time best = Time::never();
  const std::size_t protocols = std::max<std::size_t>(1, machine.protocols.size());
  for (std::size_t p = 0; p < protocols; ++p)
    best = std::min(best, rehearsal.run(size, engine, static_cast<std::uint16_t>(p)).time);
  return best;
}

double tree_over_ring(const Topology& machine) {
  return best_time("ring", machine, 1_GiB).seconds().count() /
         best_time("tree", machine, 1_GiB).seconds().count();
}

// Two trees need 2 S / beta where a ring needs 2 (n-1)/n S / beta, so nine tenths want n > 10, and
// pipelines whose pieces do not each pay their latency.
TEST(Tree, ReachesNineTenthsOfRingBandwidth) {
  for (const std::size_t n : {16, 32, 64, 128}) {
    const Topology machine = star(n, {400.0_Gbps, 2_us});
    const Time around = time_of("ring", CollectiveKind::all_reduce, machine, 1_GiB);
    const Time through = time_of("tree", CollectiveKind::all_reduce, machine, 1_GiB);
    EXPECT_GE(around.seconds().count() / through.seconds().count(), 0.9) << n << " ranks";
  }
}

// A machine of the catalog without its library, which has chains inside nodes and larger pieces.
Topology bare(const std::string& name, std::size_t nodes) {
  return parse_cluster("extends = '" + name + "'\n[library]\nname = 'none'\n", "bare.toml",
                       {nodes, std::nullopt});
}

TEST(Tree, ReachesNineTenthsOfRingBandwidthOnMachinesOfTheCatalog) {
  for (const std::string name : {"dgx-h100", "dgx-a100", "dgx-b200", "p4d", "p5"})
    for (const std::size_t nodes : {2, 4, 8, 16})
      EXPECT_GE(tree_over_ring(bare(name, nodes)), 0.9) << nodes << " nodes of " << name;
  for (const std::string name : {"dgx-2", "gb200-nvl72"})  // 16 and 72 ranks on one switch
    EXPECT_GE(tree_over_ring(bare(name, 1)), 0.9) << name;
  const double node = tree_over_ring(bare("dgx-h100", 1));
  EXPECT_GE(node, 0.85) << "8 ranks allow 7/8";
}

TEST(Tree, LatencyGrowsWithTheLogarithm) {
  // Two trees of depth log2 n, up and down, over a switch: two links each way per hop.
  for (const std::size_t n : {4, 16, 64, 256, 1024}) {
    const Topology machine = star(n, cable);
    const Time time = time_of("tree", CollectiveKind::all_reduce, machine, Bytes{8});
    const auto depth = static_cast<std::int64_t>(std::bit_width(n - 1));
    const Time latency = 2 * depth * 4_us;
    EXPECT_GE(time, latency) << n << " ranks, depth " << depth;
    EXPECT_LE(time, latency + 2 * depth * 1_ns) << "four bytes a hop, three of them at once";
  }
}

TEST(HalvingDoubling, PowersOfTwo) {
  for (const std::int64_t n : {2, 4, 8, 16, 32}) {
    const Topology machine = star(static_cast<std::size_t>(n), cable);
    Time expected;
    for (std::int64_t part = 2; part <= n; part *= 2)
      expected += 2 * (4_us + Time::round(Bytes{64'000'000 * 32 / part} / cable.bandwidth));
    EXPECT_EQ(
        time_of("halving_doubling", CollectiveKind::all_reduce, machine, Bytes{64'000'000 * 32}),
        expected)
        << "sum over k of 2 (alpha + S / (2^k beta)), n = " << n;
  }
}

TEST(Bruck, GathersInLogStepsForAnyNumberOfRanks) {
  const Bytes chunk{1'000'004};
  for (std::int64_t n = 2; n <= 33; ++n) {
    Time expected;
    for (std::int64_t have = 1; have < n; have *= 2)
      expected += 4_us + Time::round(std::min(have, n - have) * chunk / cable.bandwidth);
    for (const Detail detail : {Detail::folded, Detail::transfers})
      EXPECT_EQ(time_of("bruck", CollectiveKind::all_gather,
                        star(static_cast<std::size_t>(n), cable), n * chunk, detail),
                expected)
          << "sum over k of (alpha + min(2^k, n - 2^k) S / (n beta)), n = " << n;
  }
}

TEST(Pat, AggregatesBlocksIntoMessagesOfBoundedLength) {
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
    for (const Bytes chunk : {4_B, 64_KiB, 100'000_B, 1_MiB})
      for (std::int64_t n = 2; n <= 33; ++n) {
        const std::int64_t most = std::max<std::int64_t>(1, 512 * 1024 / chunk.count());
        Time expected;
        for (std::int64_t distance = 1; distance < n; distance *= 2)
          for (std::int64_t left = (n - 1 + distance) / (2 * distance); left > 0; left -= most)
            expected += 4_us + Time::round(std::min(left, most) * chunk / cable.bandwidth);
        const Topology machine = star(static_cast<std::size_t>(n), cable);
        for (const Detail detail : {Detail::folded, Detail::transfers})
          EXPECT_EQ(time_of("pat", kind, machine, n * chunk, detail), expected)
              << to_string(kind) << ", " << n << " ranks, blocks of " << chunk.count();
      }
  EXPECT_EQ(time_of("pat", CollectiveKind::all_gather, star(32, cable), 2_MiB),
            (3 + 32 / 8 - 1) * 4_us + 31 * Time::round(64_KiB / cable.bandwidth))
      << "(log2 A + n/A - 1) alpha + (n-1)/n S/beta, eight blocks a message";
}

TEST(Pat, SendsLittleFar) {
  const Cable thin{25.0_GBps, 1_us};
  const Topology machine = cluster(
      star(4, cable), 8, FatTree{.cable = thin, .levels = 2, .radix = 8, .oversubscription = 4});
  const auto time = [&](const char* how) {
    return time_of(how, CollectiveKind::all_gather, machine, 1_GiB, Detail::folded).seconds();
  };
  EXPECT_LT(1.5 * time("pat").count(), time("bruck").count());
}

TEST(InSwitch, SendsOnePlusOneNthOfTheData) {
  const Topology machine = star(8, cable, true);
  const Bytes size = 1_GiB;
  const double seconds =
      time_of("nvls", CollectiveKind::all_reduce, machine, size).seconds().count();
  const double wire = static_cast<double>(size.count()) * 9 / 8 / cable.bandwidth.count();
  EXPECT_GE(seconds, wire);
  EXPECT_LE(seconds, wire * 1.02) << "(n+1)/n S/beta and the latency of a short pipeline";
}

TEST(Hierarchical, IsTheSumOfItsParts) {
  NodeShape shape;
  shape.gpus = 8;
  shape.nics = 8;
  shape.sockets = 2;
  shape.switches = 8;
  shape.gpu_port = shape.nic_port = shape.uplink = {64.0_GBps, 500_ns};
  shape.socket = {100.0_GBps, 500_ns};
  shape.mesh = Mesh::nvswitch;
  shape.nvlink = {450.0_GBps, 1_us};
  const Topology node = make_node(shape);
  const Topology machine = cluster(node, 4, RailOptimized{{50.0_GBps, 1_us}});
  const Bytes size = 256_MiB;

  const Time inside = time_of("ring", CollectiveKind::reduce_scatter, node, size) +
                      time_of("ring", CollectiveKind::all_gather, node, size);
  // Between nodes: rank 0 of each, alone on its rail; the other seven rails do the same beside it.
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveShape column{CollectiveKind::all_reduce, {Rank{0}, Rank{8}, Rank{16}, Rank{24}}};
  const Time between = CollectiveRehearsal(algorithm("ring"), column, routing, Detail::transfers)
                           .run(Bytes{size.count() / 8}, engine)
                           .time;
  EXPECT_EQ(time_of("hierarchical", CollectiveKind::all_reduce, machine, size), inside + between);
}

TEST(Contention, KFlowsOverOneLinkTakeKTimesAsLong) {
  for (std::size_t k = 1; k <= 40; ++k) {
    Topology machine;
    const DeviceId left = machine.add({"left", DeviceKind::network_switch});
    const DeviceId right = machine.add({"right", DeviceKind::network_switch});
    machine.connect_both({left, right, 10.0_GBps, 1_us});
    for (std::size_t i = 0; i < 2 * k; ++i)
      machine.connect_both(
          {machine.add({"gpu" + std::to_string(i)}), i < k ? left : right, 100.0_GBps, 1_us});
    Program program;
    for (std::size_t i = 0; i < k; ++i) {
      const auto id = program.connect({static_cast<Rank>(i), static_cast<Rank>(k + i)});
      program.add_transfer(Stream::comm, {program.name("flow")},
                           {.connection = id, .size = Bytes{1'000'000}, .wire = Bytes{1'000'000}},
                           {});
    }
    Routing routing(machine);
    const Roofline cost;
    const Timeline timeline = FastSimulator(routing, cost).run(program);
    const Time alone = Time::round(Bytes{1'000'000} / 10.0_GBps);
    EXPECT_EQ(timeline.makespan, 3_us + static_cast<std::int64_t>(k) * alone) << k << " flows";
    EXPECT_EQ(timeline.contentions.size(), k == 1 ? 0 : k);
  }
}

}  // namespace
}  // namespace rehearse::collectives_test
