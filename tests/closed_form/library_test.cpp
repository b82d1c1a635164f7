// What a library adds to the formulas of collectives: launches, overheads by the kind of route, the
// mean of a ring's hops, shares of links and of switches.
#include <gtest/gtest.h>

#include <map>

#include "strategies/collectives/choose.hpp"
#include "strategies/collectives/decide.hpp"
#include "strategies/collectives/ring_order.hpp"
#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::library_test {
namespace {

// Two nodes of four GPUs, 600 ns apart within and 2 us between, all at 50 GB/s.
Topology two_nodes(const std::string& more = "") {
  return parse_cluster(
      "schema = 1\nnodes = 2\n[node]\nkind = 'star'\ngpus = 4\nbandwidth = '50GB/s'\n"
      "latency = '300ns'\n[fabric]\nkind = 'star'\nbandwidth = '50GB/s'\nlatency = '1us'\n" +
          more,
      "two.toml");
}

// A library that costs nothing: what is left are the ways of its rings, trees and chains.
const std::string costs_nothing =
    "[library]\nname = 'nccl'\nnetwork_launch = '0us'\npiece = '0B'\n";

Time run(std::string_view name, const Topology& machine, Bytes size,
         Detail detail = Detail::transfers) {
  return time_of(name, CollectiveKind::all_reduce, machine, size, detail);
}

// In the one protocol that switches speak.
Time run_simple(std::string_view name, const Topology& machine, Bytes size, Detail detail) {
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  CollectiveRehearsal rehearsal(algorithm(name), shape_of(CollectiveKind::all_reduce, machine),
                                routing, detail);
  const auto simple = static_cast<std::uint16_t>(machine.protocols.size() - 1);
  EXPECT_EQ(machine.protocols[simple].name, "simple");
  return rehearsal.run(size, engine, simple).time;
}

constexpr Bytes size = 8_MiB;  // a chunk of 1 MiB takes 20.97152 us
const Time chunk = Time::round(1_MiB / 50.0_GBps);

TEST(Library, ARingPaysTheMeanOfItsHops) {
  // 6 hops of 600 ns and 2 of 2 us.
  const Time mean = Time::picoseconds((6 * 600'000 + 2 * 2'000'000) / 8);
  const Topology machine = two_nodes(costs_nothing + "[[protocol]]\nname = 'simple'\n");
  EXPECT_EQ(run("ring", machine, size), 14 * (mean + chunk));
  EXPECT_EQ(run("ring", machine, size, Detail::folded), 14 * (mean + chunk));
  // Without a library steps wait for one another, and all pay the slowest hop.
  EXPECT_EQ(run("ring", two_nodes(), size), 14 * (2_us + chunk));
}

TEST(Library, OverheadsGoByTheRoute) {
  const Topology machine =
      two_nodes(costs_nothing +
                "[[protocol]]\nname = 'simple'\noverhead = '1us'\nnetwork_overhead = '4us'\n");
  // Every hop pays 1 us, the two of eight that cross the network 4 us more.
  const Time mean = Time::picoseconds((6 * 1'600'000 + 2 * 7'000'000) / 8);
  EXPECT_EQ(run("ring", machine, size), 14 * (mean + chunk));
  EXPECT_EQ(run("ring", machine, size, Detail::folded), 14 * (mean + chunk));
}

// By a socket every one of the 14 steps waits for the message between the nodes, 2 + 4 us and its
// bytes, though six of eight hops stay within them. A tree's pieces go one by one there, too: it
// takes longer than where the next one leaves while a message is on its way.
TEST(Library, AllStepsWaitWhereAHostHandsOnOneMessageAtATime) {
  const std::string protocol = "[[protocol]]\nname = 'simple'\nnetwork_overhead = '4us'\n";
  const Topology socket = two_nodes(costs_nothing + "one_at_a_time = true\n" + protocol);
  EXPECT_EQ(run("ring", socket, size), 14 * (6_us + chunk));
  EXPECT_EQ(run("ring", socket, size, Detail::folded), 14 * (6_us + chunk));
  const Topology queue = two_nodes(costs_nothing + protocol);
  EXPECT_GT(run("tree", socket, size), run("tree", queue, size));
}

TEST(Library, LaunchComesBeforeTheFirstMessage) {
  const Topology machine = two_nodes(
      "[[protocol]]\nname = 'simple'\nlaunch = '7us'\n[library]\nname = 'nccl'\n"
      "network_launch = '5us'\npiece = '0B'\n");
  const Topology at_once = two_nodes(costs_nothing + "[[protocol]]\nname = 'simple'\n");
  for (const char* name : {"ring", "halving_doubling", "hierarchical"})
    EXPECT_EQ(run(name, machine, size), run(name, at_once, size) + 12_us) << name;
  Routing routing(machine);
  const Roofline cost;
  FastSimulator engine(routing, cost);
  Program whole;
  Collective work{.kind = CollectiveKind::all_reduce,
                  .group = all_ranks(machine),
                  .data = {Buffer{0}, Bytes{0}, size},
                  .result = {}};
  whole.add_collective(comm_lane(0), {whole.name("all"), 0}, work, {});
  EXPECT_EQ(engine.run(expand_collectives(whole, routing, {.algorithm = "ring"})).makespan,
            run("ring", machine, size));
}

TEST(Library, LinksCarryTheirShare) {
  const Topology machine = two_nodes(
      "[library]\nname = 'nccl'\nnetwork_launch = '0us'\n"
      "efficiency = { nvlink = 0.5, network = 0.5 }\n[[protocol]]\nname = 'plain'\n");
  for (const Link& link : machine.links()) {
    EXPECT_EQ(link.bandwidth.count(), 25e9);
    EXPECT_EQ(nameplate(link).count(), 50e9);
  }
  const Time mean = Time::picoseconds((6 * 600'000 + 2 * 2'000'000) / 8);
  EXPECT_EQ(run("ring", machine, size), 14 * (mean + Time::round(1_MiB / 25.0_GBps)));
}

TEST(Library, ASwitchThatAddsReachesItsShare) {
  const auto machine = [](const char* share) {
    return parse_cluster(std::string{"schema = 1\n[node]\nkind = 'star'\ngpus = 8\n"
                                     "bandwidth = '50GB/s'\nlatency = '0us'\nreduces = true\n"
                                     "[[protocol]]\nname = 'simple'\n[library]\nname = 'nccl'\n"
                                     "piece = '0B'\nin_switch = "} +
                             share + "\n",
                         "star.toml");
  };
  const double all = run("nvls", machine("1.0"), 1_GiB).seconds().count();
  EXPECT_NEAR(all, 9.0 / 8.0 * 1073741824.0 / 50e9, all * 0.01) << "(n+1)/n S/beta";
  EXPECT_NEAR(run("nvls", machine("0.5"), 1_GiB).seconds().count() / all, 2, 1e-3);
}

// Channels carry what they carry, however fast the links are: 20 of 50 GB/s takes 2.5 times as
// long.
TEST(Library, ChannelsThroughASwitchThatAddsHaveARate) {
  const auto machine = [](const char* rate) {
    return parse_cluster(std::string{"schema = 1\n[node]\nkind = 'nvswitch'\ngpus = 8\n"
                                     "reduces = true\n[node.nvlink]\nbandwidth = '50GB/s'\n"
                                     "latency = '0us'\n[[protocol]]\nname = 'simple'\n"
                                     "[library]\nname = 'nccl'\npiece = '0B'\n"} +
                             rate,
                         "switch.toml");
  };
  const auto seconds = [&](const char* rate) {
    return run("nvls", machine(rate), 1_GiB).seconds().count();
  };
  EXPECT_NEAR(seconds("switch_rate = '20GB/s'\n") / seconds(""), 50.0 / 20, 1e-3);
  EXPECT_EQ(seconds("switch_rate = '60GB/s'\n"), seconds(""));
  // Ranks behind one switch do not take the channels of those who are not.
  EXPECT_EQ(seconds("far_switch_rate = '20GB/s'\n"), seconds(""));
}

// 24 channels in one NVLink domain and 32 beyond it (NCCL nvls.cc), each as fast as a Hopper's.
TEST(Library, BlackwellHasMoreChannelsThanHopper) {
  const Library hopper = load_cluster("dgx-h100").library, one = load_cluster("dgx-b200").library;
  EXPECT_DOUBLE_EQ(one.switch_rate.count() / hopper.switch_rate.count(), 24.0 / 16);
  EXPECT_DOUBLE_EQ(one.far_switch_rate.count() / hopper.far_switch_rate.count(), 2.0);
  EXPECT_EQ(load_cluster("dgx-a100").library.switch_rate.count(), 0);
}

// The levels of nvls_tree work on different pieces at the same time.
TEST(Library, NvlsTreeTakesItsSlowestLevel) {
  const Topology machine = load_cluster("dgx-h100", {2, std::nullopt});
  const Topology node = load_cluster("dgx-h100", {1, std::nullopt});
  const double both = run_simple("nvls_tree", machine, 8_GiB, Detail::folded).seconds().count();
  const double inside = run_simple("nvls", node, 8_GiB, Detail::folded).seconds().count();
  EXPECT_GE(both, inside * 0.99);
  EXPECT_LE(both, inside * 1.1);
  EXPECT_EQ(run_simple("nvls_tree", machine, 64_MiB, Detail::folded),
            run_simple("nvls_tree", machine, 64_MiB, Detail::transfers));
}

// Chunks of a tree get longer with the data, and no size is sent in so few that it takes longer
// than twice as much.
TEST(Library, MoreBytesTakeNoLessTime) {
  for (const char* name : {"dgx-1", "dgx-a100", "mi300x-8", "v100-pcie-8"}) {
    const Topology machine = load_cluster(name, {8, std::nullopt});
    Time before{};
    for (Bytes data = 16_KiB; data <= 256_MiB; data = data + data) {
      const Time now = run_simple("tree", machine, data, Detail::folded);
      EXPECT_GE(now, before) << name << ", " << data.count() << " bytes";
      before = now;
    }
  }
}

// Eight rings over two nodes of eight GPUs, every pair joined: each link carries one of them.
TEST(Library, RingsShareAFullMeshEvenly) {
  const Topology machine = load_cluster("mi300x-8", {2, std::nullopt});
  Routing routing(machine);
  const auto orders = ring_orders(routing, all_ranks(machine), 0);
  ASSERT_EQ(orders.size(), 8u);
  std::map<std::pair<Rank, Rank>, int> used;
  for (const auto& order : orders)
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Rank from = order[i], to = order[(i + 1) % order.size()];
      if (index(from) / 8 == index(to) / 8) ++used[{from, to}];
    }
  EXPECT_EQ(used.size(), 2u * 8 * 7);
  for (const auto& [pair, times] : used) EXPECT_EQ(times, 1);
}

// Four NICs for eight GPUs, sixteen, and thirty-two: rings fill all of them, evenly.
TEST(Library, RingsFillAllNics) {
  for (const int nics : {4, 8, 16, 32}) {
    const Topology machine =
        parse_cluster("extends = 'dgx-a100'\nnodes = 2\n[node]\nnics = " + std::to_string(nics) +
                          "\n[fabric]\nkind = 'fat_tree'\nbandwidth = '40Gbps'\nlatency = "
                          "'1us'\nradix = 128\n[library]\nname = 'none'\n",
                      "nics.toml");
    // 2(n-1)/n S over nics x 5 GB/s; latencies are far below that.
    const double expected = 2 * 15.0 / 16 * 1073741824.0 / (nics * 5e9);
    EXPECT_NEAR(run("ring", machine, 1_GiB, Detail::folded).seconds().count() / expected, 1, 0.02)
        << nics << " NICs";
  }
}

}  // namespace
}  // namespace rehearse::library_test
