// Queues against hand-made schedules: requests that become ready at known times, served one at a
// time for a known while. Both engines, where SimGrid is built.
#include <gtest/gtest.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/program/verify.hpp"
#include "tools/cli/engine.hpp"
#include "topology/generators.hpp"

namespace rehearse::queue_test {
namespace {

struct Machine {
  Topology topology = star(6, {10.0_GBps, 2_us}, true);
  Routing routing{topology};
  Program program;
  Label label{program.name("op"), Label::no_number};

  /// A pause of a worker, from the beginning of the run on.
  OpId pause(std::uint32_t worker, Time time) {
    return program.add_compute(static_cast<Rank>(worker), Stream::compute, label, {.fixed = time},
                               {});
  }
  OpId serve(Time time, std::vector<OpId> after, Stream stream = queue_lane(0)) {
    return program.add_compute(Rank{5}, stream, label, {.fixed = time}, after);
  }
  Timeline run() {
    const Roofline cost;
    const Timeline ours = FastSimulator(routing, cost).run(program);
#ifdef REHEARSE_HAS_SIMGRID
    const Timeline theirs = make_engine("simgrid", routing, cost)->run(program);
    for (std::size_t i = 0; i < program.size(); ++i) {
      EXPECT_EQ(ours.spans[i].begin, theirs.spans[i].begin) << i;
      EXPECT_EQ(ours.spans[i].end, theirs.spans[i].end) << i;
    }
#endif
    return ours;
  }
};

TEST(Queue, ServesInTheOrderInWhichRequestsBecomeReady) {
  Machine machine;
  std::vector<OpId> requests;
  constexpr std::array ready{9_us, 3_us, 5_us, 3_us, 30_us};
  for (std::uint32_t w = 0; w < ready.size(); ++w)
    requests.push_back(machine.serve(4_us, {machine.pause(w, ready[w])}));
  const Timeline timeline = machine.run();
  // 3 to 7: worker 1; to 11: 3, ready with it, but later in the program; then 2, then 0. Then idle.
  constexpr std::array begins{15_us, 3_us, 11_us, 7_us, 30_us};
  for (std::size_t w = 0; w < ready.size(); ++w)
    EXPECT_EQ(timeline.spans[index(requests[w])].begin, begins[w]) << "worker " << w;
  EXPECT_EQ(timeline.makespan, 34_us);
  EXPECT_EQ(timeline.spans[index(requests[2])].blocker, requests[3]);
  EXPECT_EQ(wait_of(machine.program, timeline, requests[2]), Wait::stream);
  EXPECT_EQ(wait_of(machine.program, timeline, requests[1]), Wait::input);
}

TEST(Queue, AStreamInProgramOrderWouldHaveWaitedForTheFirst) {
  Machine machine;
  for (const Time ready : {9_us, 3_us})
    machine.serve(4_us, {machine.pause(ready == 9_us ? 0 : 1, ready)}, Stream::comm);
  EXPECT_EQ(machine.run().makespan, 17_us);
}

TEST(Queue, KRequestsAtOnceTakeKServiceTimesInOrderOfTheProgram) {
  Machine machine;
  std::vector<OpId> requests;
  for (int k = 0; k < 50; ++k) requests.push_back(machine.serve(7_us, {}));
  const Timeline timeline = machine.run();
  for (std::size_t k = 0; k < requests.size(); ++k)
    EXPECT_EQ(timeline.spans[index(requests[k])].end, static_cast<std::int64_t>(k + 1) * 7_us);
}

TEST(Queue, QueuesOfOneRankShareItsComputeUnitAsStreamsDo) {
  Machine machine;
  machine.serve(10_us, {}, queue_lane(0));
  machine.serve(10_us, {}, queue_lane(1));
  EXPECT_EQ(machine.run().makespan, 20_us);  // both at half the rate
}

TEST(Queue, PostedTransfersLeaveItForTheNextOneWhenTheirBytesHaveLeft) {
  Machine machine;
  const Bytes size{1'000'000};  // 100 us at 10 GB/s, 4 us over two cables
  std::vector<OpId> sends;
  for (std::uint32_t w = 0; w < 4; ++w) {
    const ConnectionId way = machine.program.connect(
        {.source = Rank{5}, .target = static_cast<Rank>(w), .posted = true, .others = {}});
    const OpId asked = machine.pause(w, static_cast<std::int64_t>(4 - w) * 1_us);
    sends.push_back(machine.program.add_transfer(queue_lane(0), machine.label,
                                                 {.connection = way, .size = size, .wire = size},
                                                 std::array{asked}));
  }
  const Timeline timeline = machine.run();
  for (std::size_t w = 0; w < sends.size(); ++w) {  // worker 3 asks first
    const auto place = static_cast<std::int64_t>(3 - w);
    EXPECT_EQ(timeline.spans[index(sends[w])].begin, 1_us + place * 100_us);
    EXPECT_EQ(timeline.spans[index(sends[w])].end, 1_us + (place + 1) * 100_us + 4_us);
  }
}

TEST(Queue, OnlyACycleOfEdgesIsADeadlock) {
  Machine machine;
  const OpId first = machine.serve(1_us, {}), second = machine.serve(1_us, {});
  // On a stream in program order this could never finish.
  machine.program.set_after(first, std::array{second});
  EXPECT_EQ(machine.run().makespan, 2_us);
  machine.program.set_after(second, std::array{first});
  try {
    FastSimulator(machine.routing, Roofline{}).run(machine.program);
    FAIL() << "a cycle was run";
  } catch (const CheckFailed& failure) {
    EXPECT_STREQ(failure.what(),
                 "cannot finish: op 0 'op' (rank 5, queue 0) waits for op 1 'op' (rank 5, queue 0) "
                 "(edge) waits for op 0 (edge)");
  }
}

}  // namespace
}  // namespace rehearse::queue_test
