// A folded flow in bursts against its formula: lead + k burst + (k - 1) gap alone, and what it and
// another flow take from each other on a link that both cross.
#include <gtest/gtest.h>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "topology/generators.hpp"

namespace rehearse::bursts_test {
namespace {

constexpr Bytes megabyte{1'000'000};  // 100 us at 10 GB/s
constexpr Time burst = 100_us, lead = 4_us, gap = 10_us;

/// Flows over one link of 10 GB/s.
struct OneLink {
  Topology topology = star(2, {10.0_GBps, 2_us}, true);
  Routing routing{topology};
  Program program;

  OpId flow(std::uint32_t bursts, Bytes each, Time latency, std::vector<OpId> after = {}) {
    const ConnectionId way = program.connect({.source = Rank{0}, .target = Rank{0}, .others = {}});
    program.folded.push_back({.crossings = {{LinkId{0}, 1}},
                              .latency = latency,
                              .bursts = bursts,
                              .gap = bursts > 1 ? gap : Time{}});
    const Bytes size{each.count() * bursts};
    const Stream lane = comm_lane(program.connections().size() - 1);
    return program.add_transfer(lane, {}, {.connection = way, .size = size, .wire = size}, after);
  }
  OpId wait(Time time) {
    return program.add_compute(Rank{0}, Stream::compute, {}, {.fixed = time}, {});
  }
  Timeline run() {
    const Roofline cost;
    return FastSimulator(routing, cost).run(program);
  }
};

TEST(Bursts, AloneTakeTheirLeadTheirBytesAndTheGapsBetween) {
  for (std::int64_t k = 1; k <= 8; ++k) {
    OneLink link;
    const OpId op = link.flow(static_cast<std::uint32_t>(k), megabyte, lead);
    EXPECT_EQ(link.run().spans[index(op)].end, lead + k * burst + (k - 1) * gap) << k;
  }
}

TEST(Bursts, ShareTheLinkWhileTheyMove) {
  OneLink link;
  const OpId bursts = link.flow(3, megabyte, lead);
  const OpId other = link.flow(1, megabyte, lead);
  const Timeline timeline = link.run();
  EXPECT_EQ(timeline.spans[index(other)].end, lead + 2 * burst);
  // The first burst took twice as long; then the link is its own.
  EXPECT_EQ(timeline.spans[index(bursts)].end, lead + 2 * burst + 2 * (gap + burst));
  ASSERT_EQ(timeline.contentions.size(), 2u);
  for (const Timeline::Contention& contention : timeline.contentions)
    EXPECT_EQ(contention.lost, burst);
}

TEST(Bursts, LeaveTheLinkToOthersInTheirGaps) {
  OneLink link;
  const OpId bursts = link.flow(3, megabyte, lead);
  const OpId other = link.flow(1, Bytes{100'000}, Time{}, {link.wait(lead + burst)});
  const Timeline timeline = link.run();
  EXPECT_EQ(timeline.spans[index(other)].end, lead + burst + 10_us);
  EXPECT_EQ(timeline.spans[index(bursts)].end, lead + 3 * burst + 2 * gap);
  EXPECT_TRUE(timeline.contentions.empty());
}

TEST(Bursts, MeetAnotherOnlyWithTheBurstsThatItReaches) {
  OneLink link;
  const OpId bursts = link.flow(2, megabyte, lead);
  // From the beginning of the second burst on, half as long at half the rate.
  const OpId other = link.flow(1, Bytes{500'000}, Time{}, {link.wait(lead + burst + gap)});
  const Timeline timeline = link.run();
  EXPECT_EQ(timeline.spans[index(other)].end, lead + burst + gap + burst);
  EXPECT_EQ(timeline.spans[index(bursts)].end, lead + 2 * burst + gap + 50_us);
}

}  // namespace
}  // namespace rehearse::bursts_test
