// SimGridSimulator alone, against closed forms: it is the reference, so what it is set to must be
// known without our own engine.
#include "sim/simgrid/simgrid_simulator.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"

namespace rehearse::simgrid_test {
namespace {

// Ranks around one switch, every cable 10 GB/s and 1 us.
Topology star(std::size_t ranks) {
  Topology topology;
  for (std::size_t i = 0; i < ranks; ++i)
    topology.add({.name = "gpu" + std::to_string(i), .kind = DeviceKind::gpu});
  const DeviceId hub = topology.add(
      {.name = "switch", .kind = DeviceKind::network_switch, .accelerator = 0, .reduces = true});
  for (std::size_t i = 0; i < ranks; ++i)
    topology.connect_both({.source = static_cast<DeviceId>(i),
                           .target = hub,
                           .bandwidth = 10.0_GBps,
                           .latency = 1_us});
  return topology;
}

Timeline run(const Program& program, const Topology& topology) {
  Routing routing{topology};
  const Roofline cost;
  return SimGridSimulator{routing, cost}.run(program);
}

OpId send(Program& program, Rank source, Rank target, Bytes size, std::uint16_t protocol = 0,
          Stream stream = Stream::comm) {
  const ConnectionId way =
      program.connect({.source = source, .target = target, .protocol = protocol});
  return program.add_transfer(stream, {program.name("send")},
                              {.connection = way, .size = size, .wire = size}, {});
}

constexpr Rank rank(std::uint32_t r) { return static_cast<Rank>(r); }

TEST(SimGrid, FlowsOverOneLinkTakeAsManyTimesAsLong) {
  for (std::uint32_t flows = 1; flows <= 8; ++flows) {
    Program program;
    for (std::uint32_t i = 0; i < flows; ++i) send(program, rank(i + 1), rank(0), 1'000'000_B);
    // 2 us of latency, then k × 1 MB at 10 GB/s into rank 0.
    EXPECT_EQ(run(program, star(9)).makespan, 2_us + flows * 100_us) << flows << " flows";
  }
}

TEST(SimGrid, SharesAreMaxMinWhateverTheLatency) {
  // Latency weights a flow in SimGrid's TCP models. Here both halve the link into rank 0 although
  // one of them waited ten times as long to begin.
  Program program;
  program.protocols = {{}, {.name = "late", .overhead = 18_us}};
  const OpId near = send(program, rank(1), rank(0), 1'000'000_B);
  const OpId far = send(program, rank(2), rank(0), 1'000'000_B, 1);
  const Timeline timeline = run(program, star(3));
  EXPECT_EQ(timeline.spans[index(near)].end, 184_us);  // 2 + 18 alone + 2 × 82 shared
  EXPECT_EQ(timeline.spans[index(far)].end, 202_us);   // both links are full from 2 us on
}

TEST(SimGrid, AProtocolLimitsOneChannelOnly) {
  Program program;
  program.protocols = {{}, {.name = "slow", .limit = 2.5_GBps}};
  const OpId slow = send(program, rank(1), rank(0), 1'000'000_B, 1);
  const OpId fast = send(program, rank(2), rank(0), 3'000'000_B);
  const Timeline timeline = run(program, star(3));
  EXPECT_EQ(timeline.spans[index(slow)].end, 402_us);  // 1 MB at 2.5 GB/s
  EXPECT_EQ(timeline.spans[index(fast)].end, 402_us);  // 3 MB at what is left
}

TEST(SimGrid, AMulticastCrossesEachLinkOnce) {
  Program program;
  const ConnectionId way = program.connect({.source = rank(0),
                                            .target = rank(0),
                                            .shape = Connection::Shape::multicast,
                                            .others = {rank(1), rank(2), rank(3)}});
  const OpId all =
      program.add_transfer(Stream::comm, {program.name("multicast")},
                           {.connection = way, .size = 1'000'000_B, .wire = 1'000'000_B}, {});
  const Timeline timeline = run(program, star(4));
  EXPECT_EQ(timeline.spans[index(all)].end, 102_us);
  EXPECT_EQ(timeline.link_bytes[0], 1'000'000_B);  // out of rank 0
}

TEST(SimGrid, StreamsEdgesAndZeroBytesKeepTheirOrder) {
  Program program;
  const OpId first =
      program.add_compute(rank(0), Stream::compute, {program.name("work")}, {.fixed = 5_us}, {});
  const OpId second =
      program.add_compute(rank(0), Stream::compute, {program.name("work")}, {.fixed = 7_us}, {});
  const ConnectionId way = program.connect({.source = rank(0), .target = rank(1)});
  const OpId empty = program.add_transfer(Stream::comm, {program.name("empty")},
                                          {.connection = way}, std::vector{first});
  const OpId mark = program.add_marker(rank(1), Stream::compute, {program.name("mark")},
                                       std::vector{second, empty});
  const Timeline timeline = run(program, star(2));
  EXPECT_EQ(timeline.spans[index(second)].begin, 5_us);
  EXPECT_EQ(timeline.spans[index(empty)].end, 7_us);
  EXPECT_EQ(timeline.spans[index(mark)].begin, 12_us);
  EXPECT_EQ(timeline.spans[index(mark)].end, 12_us);
  EXPECT_EQ(timeline.events, 4U);
}

TEST(SimGrid, ACycleIsNamedNotSimulated) {
  Program program;
  const OpId a = program.add_marker(rank(0), Stream::compute, {program.name("a")}, {});
  const OpId b = program.add_marker(rank(0), Stream::compute, {program.name("b")}, {});
  program.set_after(a, std::vector{b});
  try {
    run(program, star(2));
    FAIL() << "a program that waits for itself has no makespan";
  } catch (const CheckFailed& error) {
    EXPECT_STREQ(error.what(),
                 "cannot finish: op 0 'a' (rank 0, compute) waits for op 1 'b' (rank 0, compute) "
                 "(edge) waits for op 0 (stream)");
  }
}

TEST(SimGrid, TakesNoFoldedProgram) {
  Program program;
  send(program, rank(0), rank(1), 1_MiB);
  program.folded.push_back({});
  EXPECT_THROW(run(program, star(2)), InputError);
}

}  // namespace
}  // namespace rehearse::simgrid_test
