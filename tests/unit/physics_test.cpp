// Timelines that cannot have happened are refused, each with the law it breaks.
#include "sim/engine/physics.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "topology/generators.hpp"

namespace rehearse::physics_test {
namespace {

// Three ranks on a switch of 10 GB/s and 1 us a hop; 1 MB from 0 to 1, then on to 2, then compute.
struct Relay {
  Topology topology = star(3, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  Program program;
  OpId first, second, work;
  Timeline timeline;

  Relay() {
    const Label label{program.name("relay"), Label::no_number};
    const auto send = [&](Rank source, Rank target, std::span<const OpId> after) {
      Transfer transfer;
      transfer.connection = program.connect({.source = source, .target = target, .others = {}});
      transfer.size = transfer.wire = Bytes{1'000'000};
      return program.add_transfer(Stream::comm, label, transfer, after);
    };
    first = send(Rank{0}, Rank{1}, {});
    second = send(Rank{1}, Rank{2}, std::array{first});
    Compute pause;
    pause.fixed = 3_us;
    work = program.add_compute(Rank{1}, Stream::comm, label, pause, {});
    timeline = FastSimulator(routing, Roofline{}).run(program);
  }

  std::string verdict(const Timeline& candidate) {
    try {
      check_physics(program, Paths(program, routing), topology, candidate);
    } catch (const CheckFailed& failure) {
      return failure.what();
    }
    return "possible";
  }
  void shift(Timeline& candidate, OpId id, std::int64_t ps) {
    candidate.spans[index(id)].begin += Time::picoseconds(ps);
    candidate.spans[index(id)].end += Time::picoseconds(ps);
  }
};

TEST(Physics, AcceptsWhatTheEngineFound) {
  Relay relay;
  EXPECT_EQ(relay.timeline.makespan, 102_us + 102_us + 3_us);
  EXPECT_EQ(relay.verdict(relay.timeline), "possible");
}

TEST(Physics, RefusesATransferFasterThanItsLinks) {
  Relay relay;
  Timeline candidate = relay.timeline;
  candidate.spans[0].end = candidate.spans[0].end - Time::picoseconds(2000);
  EXPECT_EQ(relay.verdict(candidate),
            "impossible result: op 0 'relay' (rank 0, comm 0) took 101998000 ps, but needs "
            "101999998 ps alone");
}

TEST(Physics, RefusesAComputeShorterThanItsFixedTime) {
  Relay relay;
  Timeline candidate = relay.timeline;
  candidate.spans[2].end = candidate.spans[2].begin + 2_us;
  candidate.makespan = candidate.spans[2].end;
  EXPECT_NE(relay.verdict(candidate).find("took 2000000 ps, but needs 3000000 ps"),
            std::string::npos);
}

TEST(Physics, RefusesAnEffectBeforeItsCause) {
  Relay relay;
  Timeline candidate = relay.timeline;
  relay.shift(candidate, relay.second, -1);
  EXPECT_NE(relay.verdict(candidate).find("before its input op 0"), std::string::npos);
}

TEST(Physics, RefusesOverlapOnAStream) {
  Relay relay;
  Timeline candidate = relay.timeline;
  relay.shift(candidate, relay.work, -1);
  candidate.spans[2].blocker = no_op;
  candidate.makespan = candidate.makespan - Time::picoseconds(1);
  EXPECT_NE(relay.verdict(candidate).find("before the op before it on its stream"),
            std::string::npos);
}

TEST(Physics, RefusesLostAndInventedBytes) {
  Relay relay;
  for (const std::int64_t change : {-1, 1}) {
    Timeline candidate = relay.timeline;
    for (Bytes& bytes : candidate.link_bytes)
      if (bytes > Bytes{0}) bytes += Bytes{change};
    EXPECT_NE(relay.verdict(candidate).find("but its transfers put 1000000 on it"),
              std::string::npos);
  }
}

TEST(Physics, RefusesAMakespanThatIsNotTheLastEnd) {
  Relay relay;
  for (const std::int64_t change : {-1, 1}) {
    Timeline candidate = relay.timeline;
    candidate.makespan += Time::picoseconds(change);
    EXPECT_NE(relay.verdict(candidate).find("the makespan is"), std::string::npos);
  }
}

TEST(Physics, RefusesTimeThatRunsBackwardOrNotAtAll) {
  Relay relay;
  Timeline candidate = relay.timeline;
  candidate.spans[0].begin = Time::picoseconds(-1);
  EXPECT_NE(relay.verdict(candidate).find("runs from -1 ps"), std::string::npos);
  candidate = relay.timeline;
  candidate.spans[2].end = Time::never();
  EXPECT_NE(relay.verdict(candidate), "possible");
  candidate = relay.timeline;
  candidate.spans.pop_back();
  EXPECT_EQ(relay.verdict(candidate), "impossible result: 3 ops, but 2 spans");
}

// Two posted transfers of 1 MB on one stream: the second leaves when the first has left.
struct Posted : Relay {
  Posted() {
    program = {};
    const Label label{program.name("posted"), Label::no_number};
    const ConnectionId way =
        program.connect({.source = Rank{0}, .target = Rank{1}, .posted = true, .others = {}});
    for (const Bytes size : {Bytes{1'000'000}, Bytes{1'000'000}})
      program.add_transfer(Stream::comm, label, {.connection = way, .size = size, .wire = size},
                           {});
    timeline = FastSimulator(routing, Roofline{}).run(program);
  }
};

TEST(Physics, AcceptsAPostedTransferInFlight) {
  Posted posted;
  EXPECT_EQ(posted.timeline.spans[0].end, 102_us);
  EXPECT_EQ(posted.timeline.spans[1].begin, 100_us);
  EXPECT_EQ(posted.timeline.makespan, 202_us);
  EXPECT_EQ(posted.verdict(posted.timeline), "possible");
}

TEST(Physics, RefusesAnOpBeforeItsStreamIsFree) {
  Posted posted;
  Timeline candidate = posted.timeline;
  posted.shift(candidate, OpId{1}, -1);
  candidate.makespan = candidate.makespan - Time::picoseconds(1);
  EXPECT_NE(posted.verdict(candidate).find("before what it waited for"), std::string::npos);
  candidate.spans[1].blocker = no_op;
  EXPECT_NE(posted.verdict(candidate).find("before the op before it on its stream"),
            std::string::npos);
}

TEST(Physics, RefusesAnInputThatIsInFlight) {
  Posted posted;
  posted.program.set_after(OpId{1}, std::array{OpId{0}});
  EXPECT_NE(posted.verdict(posted.timeline).find("before its input op 0"), std::string::npos);
}

// Two transfers share a link; each alone would be fast enough, both together are not.
TEST(Physics, RefusesALinkAboveItsCapacity) {
  Topology topology = star(3, {BytesPerSecond{1e10}, Time{}});
  Routing routing{topology};
  Program program;
  const Label label{program.name("incast"), Label::no_number};
  for (const Rank source : {Rank{0}, Rank{1}}) {
    Transfer transfer;
    transfer.connection = program.connect({.source = source, .target = Rank{2}, .others = {}});
    transfer.size = transfer.wire = Bytes{1'000'000};
    program.add_transfer(Stream::comm, label, transfer, {});
  }
  Timeline timeline = FastSimulator(routing, Roofline{}).run(program);
  EXPECT_EQ(timeline.makespan, 200_us);
  for (Timeline::Span& span : timeline.spans) span.end = 100_us;
  timeline.makespan = 100_us;
  try {
    check_physics(program, Paths(program, routing), topology, timeline);
    FAIL() << "a link at twice its capacity was accepted";
  } catch (const CheckFailed& failure) {
    EXPECT_NE(std::string{failure.what()}.find("carried 2000000 bytes in 100000000 ps"),
              std::string::npos)
        << failure.what();
  }
}

// Two requests at a server, the later one of the program ready first.
TEST(Physics, RefusesOverlapAndOvertakingOnAQueue) {
  Relay relay;
  relay.program = Program{};
  const Label label{relay.program.name("serve"), Label::no_number};
  const auto serve = [&](std::uint32_t worker, Time ready) {
    const OpId asked = relay.program.add_compute(static_cast<Rank>(worker), Stream::compute, label,
                                                 {.fixed = ready}, {});
    return relay.program.add_compute(Rank{2}, queue_lane(0), label, {.fixed = 4_us},
                                     std::array{asked});
  };
  const OpId late = serve(0, 2_us), early = serve(1, 1_us);
  relay.timeline = FastSimulator(relay.routing, Roofline{}).run(relay.program);
  EXPECT_EQ(relay.verdict(relay.timeline), "possible");
  Timeline overlapping = relay.timeline;
  relay.shift(overlapping, late, -1);
  overlapping.makespan = overlapping.spans[index(late)].end;
  overlapping.spans[index(late)].blocker = no_op;
  EXPECT_NE(relay.verdict(overlapping).find("while op 3 'serve' (rank 2, queue 0) has their queue"),
            std::string::npos);
  Timeline unfair = relay.timeline;
  unfair.spans[index(late)] = {5_us, 9_us, OpId{0}};
  unfair.spans[index(early)] = {9_us, 13_us, OpId{2}};
  unfair.makespan = 13_us;
  EXPECT_EQ(relay.verdict(unfair),
            "impossible result: op 3 'serve' (rank 2, queue 0), ready at 1000000 ps, is served "
            "after op 1 'serve' (rank 2, queue 0), ready at 2000000 ps");
}

}  // namespace
}  // namespace rehearse::physics_test
