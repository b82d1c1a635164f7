// Posted transfers against their formulas: k of them behind one another take k w + alpha, where
// plain ones take k (alpha + w). Both ways through the engine, and SimGrid where it is built.
#include <gtest/gtest.h>

#include <array>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "tools/cli/engine.hpp"
#include "topology/generators.hpp"

namespace rehearse::posted_test {
namespace {

constexpr Time alpha = 4_us, wire = 100_us;  // of 1 MB at 10 GB/s over two cables of 2 us
constexpr Bytes megabyte{1'000'000};

struct Machine {
  Topology topology;
  Routing routing{topology};
  Program program;
  Label label{program.name("send"), Label::no_number};

  explicit Machine(std::size_t ranks) : topology{star(ranks, {10.0_GBps, 2_us}, true)} {}

  ConnectionId connect(std::uint32_t source, std::uint32_t target, bool posted = true) {
    return program.connect({.source = static_cast<Rank>(source),
                            .target = static_cast<Rank>(target),
                            .posted = posted,
                            .others = {}});
  }
  OpId send(ConnectionId way, std::vector<OpId> after = {}, Bytes size = megabyte,
            Stream stream = Stream::comm) {
    return program.add_transfer(stream, label, {.connection = way, .size = size, .wire = size},
                                after);
  }
  /// Checks that both engines agree to a picosecond an op, and gives ours.
  Timeline run() {
    const Roofline cost;
    const Timeline ours = FastSimulator(routing, cost).run(program);
#ifdef REHEARSE_HAS_SIMGRID
    const Timeline theirs = make_engine("simgrid", routing, cost)->run(program);
    for (std::size_t i = 0; i < program.size(); ++i) {
      const auto most = static_cast<double>(i + 1);
      EXPECT_NEAR(static_cast<double>(ours.spans[i].begin.ps()),
                  static_cast<double>(theirs.spans[i].begin.ps()), most);
      EXPECT_NEAR(static_cast<double>(ours.spans[i].end.ps()),
                  static_cast<double>(theirs.spans[i].end.ps()), most);
    }
#endif
    return ours;
  }
};

TEST(Posted, KBehindOneAnotherPayOneLatency) {
  for (std::int64_t k = 1; k <= 20; ++k) {
    Machine posted(2), plain(2);
    const ConnectionId fast = posted.connect(0, 1), slow = plain.connect(0, 1, false);
    for (std::int64_t i = 0; i < k; ++i) posted.send(fast), plain.send(slow);
    EXPECT_EQ(posted.run().makespan, k * wire + alpha);
    EXPECT_EQ(plain.run().makespan, k * (wire + alpha));
  }
}

TEST(Posted, OneAloneTakesAsLongAsAPlainOne) {
  for (const Bytes size : {0_B, 1_B, 4096_B, megabyte})
    for (const bool posted : {false, true}) {
      Machine machine(2);
      machine.send(machine.connect(0, 1, posted), {}, size);
      EXPECT_EQ(machine.run().makespan, alpha + Time::round(size / 10.0_GBps));
    }
}

TEST(Posted, ARelayWaitsForTheArrival) {
  Machine machine(4);
  OpId before = machine.send(machine.connect(0, 1));
  for (const std::uint32_t rank : {1, 2})
    before = machine.send(machine.connect(rank, rank + 1), {before});
  EXPECT_EQ(machine.run().makespan, 3 * (wire + alpha));
}

TEST(Posted, APipelineFillsOnceAndThenRunsAtFullRate) {
  for (const std::int64_t pieces : {1, 2, 7, 40}) {
    Machine machine(5);
    std::vector<ConnectionId> ways;
    for (const std::uint32_t rank : {0, 1, 2, 3}) ways.push_back(machine.connect(rank, rank + 1));
    for (std::int64_t p = 0; p < pieces; ++p) {
      std::vector<OpId> after;
      for (const ConnectionId way : ways) after = {machine.send(way, after)};
    }
    EXPECT_EQ(machine.run().makespan, 4 * alpha + (4 - 1 + pieces) * wire)
        << "d alpha + (d-1+C) w, C = " << pieces;
  }
}

TEST(Posted, ThatShareALinkFreeTheirStreamsLateAndStillPayOneLatency) {
  for (std::int64_t k = 1; k <= 6; ++k) {
    Machine machine(4);
    for (const std::uint32_t source : {0, 1, 2}) {
      const ConnectionId way = machine.connect(source, 3);
      for (std::int64_t i = 0; i < k; ++i) machine.send(way);
    }
    const Timeline timeline = machine.run();
    EXPECT_EQ(timeline.makespan, 3 * k * wire + alpha) << "three senders, " << k << " each";
    for (const Timeline::Contention& loss : timeline.contentions) EXPECT_EQ(loss.lost, 2 * wire);
    EXPECT_EQ(timeline.contentions.size(), static_cast<std::size_t>(3 * k));
  }
}

TEST(Posted, WhateverFollowsOnTheStreamBeginsWhenTheLastByteHasLeft) {
  Machine machine(3);
  const OpId first = machine.send(machine.connect(0, 1));
  const OpId plain = machine.send(machine.connect(0, 2, false));
  const OpId pause =
      machine.program.add_compute(Rank{0}, Stream::comm, machine.label, {.fixed = 7_us}, {});
  const OpId empty = machine.send(machine.connect(0, 2), {}, 0_B);
  const OpId mark = machine.program.add_marker(Rank{0}, Stream::comm, machine.label, {});
  const OpId arrived =
      machine.program.add_marker(Rank{1}, Stream::compute, machine.label, std::array{first});
  const Timeline timeline = machine.run();
  const auto begin = [&](OpId id) { return timeline.spans[index(id)].begin; };
  EXPECT_EQ(begin(plain), wire);
  EXPECT_EQ(begin(pause), wire + (alpha + wire)) << "a plain transfer holds its stream to its end";
  EXPECT_EQ(begin(empty), begin(pause) + 7_us);
  EXPECT_EQ(timeline.spans[index(empty)].end, begin(empty) + alpha);
  EXPECT_EQ(begin(mark), begin(empty)) << "nothing to send: the stream is free at once";
  EXPECT_EQ(begin(arrived), wire + alpha);
  EXPECT_EQ(wait_of(machine.program, timeline, plain), Wait::stream);
  EXPECT_EQ(wait_of(machine.program, timeline, arrived), Wait::input);
}

TEST(Posted, AnOpThatNamesTheOneBeforeItWaitsForItsArrival) {
  Machine machine(2);
  const ConnectionId way = machine.connect(0, 1);
  const OpId first = machine.send(way), second = machine.send(way, {first});
  const Timeline timeline = machine.run();
  EXPECT_EQ(timeline.spans[index(second)].begin, wire + alpha);
  EXPECT_EQ(wait_of(machine.program, timeline, second), Wait::input);
}

TEST(Posted, AMulticastAndASwitchReduceTooFreeTheirStreams) {
  using Shape = Connection::Shape;
  for (const Shape shape : {Shape::multicast, Shape::switch_reduce}) {
    Machine machine(4);
    const ConnectionId way = machine.program.connect(
        {.shape = shape, .posted = true, .others = {Rank{1}, Rank{2}, Rank{3}}});
    for (int i = 0; i < 5; ++i) machine.send(way);
    EXPECT_EQ(machine.run().makespan, 5 * wire + alpha);
  }
}

}  // namespace
}  // namespace rehearse::posted_test
