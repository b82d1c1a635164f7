// The engine has two ways through a program: op by op where nothing can be short, an event queue
// elsewhere. Contention in one corner of a machine sends the whole program the other way, and must
// change nothing in the corners it does not reach.
#include <gtest/gtest.h>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/sharing.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/random_program.hpp"
#include "topology/generators.hpp"

namespace rehearse::event_loop_test {
namespace {

/// Three more ranks around a switch of their own.
Topology with_corner(Topology topology) {
  const DeviceId hub = topology.add({"corner", DeviceKind::network_switch});
  for (const char* const name : {"left", "right", "target"})
    topology.connect_both({topology.add({name}), hub, 10.0_GBps, 1_us});
  return topology;
}

/// Two of the corner's ranks send to the third, all the time that the program may take.
void add_contention(Program& program, const Topology& with_corner) {
  const auto target = static_cast<Rank>(with_corner.rank_count() - 1);
  for (std::uint32_t i = 2; i > 0; --i) {
    const auto source = static_cast<Rank>(index(target) - i);
    const ConnectionId way = program.connect({source, target});
    for (const Bytes size : {Bytes{777'777}, 3_MiB, 1_B, 1_GiB})
      program.add_transfer(Stream::comm, {program.name("dummy")},
                           {.connection = way, .size = size, .wire = size}, {});
  }
}

/// Each pair of ranks has a link, a connection and a lane of its own, so nothing is ever short.
Program uncontended_program(Draw& draw, std::size_t ranks) {
  Program program;
  program.protocols = {{}, {.name = "slow", .overhead = 700_ns, .limit = 3.0_GBps}};
  std::vector<std::pair<ConnectionId, Stream>> ways;
  for (std::size_t s = 0; s < ranks; ++s)
    for (std::size_t t = 0; t < ranks; ++t) {
      if (s == t) continue;
      Connection way{static_cast<Rank>(s), static_cast<Rank>(t)};
      way.protocol = static_cast<std::uint16_t>(draw.below(2));
      way.posted = draw.once_in(2);
      ways.emplace_back(program.connect(way), comm_lane(t));
    }
  for (std::size_t i = draw.between(1, 120); i > 0; --i) {
    std::vector<OpId> after;
    for (std::size_t k = program.size() == 0 ? 0 : draw.below(4); k > 0; --k)
      after.push_back(static_cast<OpId>(draw.below(program.size())));
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    const auto rank = static_cast<Rank>(draw.below(ranks));
    const Label label{program.name("op"), static_cast<std::uint32_t>(i)};
    const std::size_t kind = draw.below(6);
    if (kind == 0) {
      program.add_marker(rank, draw.once_in(2) ? Stream::compute : Stream::copy, label, after);
    } else if (kind == 1) {
      const Time fixed = Time::picoseconds(draw.of<std::int64_t>({0, 1, 999'999, 2'000'000}));
      program.add_compute(rank, Stream::compute, label, {.fixed = fixed}, after);
    } else {
      const auto [way, lane] = draw.of(ways);
      const Bytes size{draw.of<std::int64_t>({0, 1, 8, 65'536, 1'000'000, 12'345'678})};
      program.add_transfer(lane, label, {.connection = way, .size = size, .wire = size}, after);
    }
  }
  return program;
}

/// The same ops at the same times, with and without contention in the corner.
void expect_both_ways_agree(Program program, const Topology& machine) {
  const Topology larger = with_corner(machine);
  Routing small_routing(machine), large_routing(larger);
  const Roofline cost;
  ASSERT_TRUE(Sharing(program, Paths(program, small_routing), machine).capacities().empty());
  const Timeline in_order = FastSimulator(small_routing, cost).run(program);
  const std::size_t ops = program.size();
  add_contention(program, larger);
  ASSERT_FALSE(Sharing(program, Paths(program, large_routing), larger).capacities().empty());
  const Timeline by_events = FastSimulator(large_routing, cost).run(program);
  for (std::size_t i = 0; i < ops; ++i) {
    const auto id = static_cast<OpId>(i);
    ASSERT_EQ(by_events.spans[i].begin, in_order.spans[i].begin) << program.describe(id);
    ASSERT_EQ(by_events.spans[i].end, in_order.spans[i].end) << program.describe(id);
    ASSERT_EQ(by_events.spans[i].blocker == no_op, in_order.spans[i].blocker == no_op);
  }
  for (const Timeline::Contention& loss : by_events.contentions) ASSERT_GE(index(loss.op), ops);
  for (std::size_t l = 0; l < machine.links().size(); ++l)
    ASSERT_EQ(by_events.link_bytes[l], in_order.link_bytes[l]);
}

TEST(EventLoop, AgreesWithProgramOrderOnRandomPrograms) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const std::size_t ranks = draw.between(2, 7);
    const Cable cable{BytesPerSecond{draw.of<double>({1e9, 3.7e9, 25e9})},
                      Time::picoseconds(draw.of<std::int64_t>({0, 700, 500'000}))};
    expect_both_ways_agree(uncontended_program(draw, ranks), fully_connected(ranks, cable));
    if (HasFatalFailure()) return;
  }
}

TEST(EventLoop, AgreesWithProgramOrderOnCollectives) {
  const Cable cable{50.0_GBps, 1_us};
  for (const Topology& machine : {ring(8, cable), star(13, cable)}) {
    for (const std::string_view name : {"ring", "tree", "halving_doubling"}) {
      Routing routing(machine);
      const CollectiveRehearsal rehearsal(algorithm(name),
                                          shape_of(CollectiveKind::all_reduce, machine), routing,
                                          Detail::transfers);
      const Program program = rehearsal.program(Bytes{3'333'332});
      if (!Sharing(program, Paths(program, routing), machine).capacities().empty()) continue;
      SCOPED_TRACE(std::string(name) + " on " + machine.name);
      expect_both_ways_agree(program, machine);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rehearse::event_loop_test
