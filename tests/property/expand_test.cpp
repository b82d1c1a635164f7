// Collectives inside programs, expanded: the same numbers as done whole, no race, and ranks that
// wait for their own part only.
#include "strategies/collectives/decide.hpp"

#include <gtest/gtest.h>

#include "sim/program/verify.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/interpreter.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::expand_test {
namespace {

constexpr Bytes element{4};

Slice part_of_buffer(std::uint32_t buffer, std::int64_t first, std::int64_t count) {
  return {static_cast<Buffer>(buffer), first * element, count * element};
}

/// Kernels that write a rank's data, an all-reduce of them, a kernel after it; twice, on two
/// streams and two buffers, so that the second may overlap the first.
Program two_steps(const Topology& machine, std::int64_t elements) {
  Program program;
  const Label kernel{program.name("kernel")}, reduce{program.name("all_reduce")};
  for (std::uint32_t step = 0; step < 2; ++step) {
    const Slice data = part_of_buffer(step, 0, elements);
    const Access written[] = {{data, true}};
    const Access read[] = {{data, false}};
    std::vector<OpId> ready;
    for (const Rank rank : all_ranks(machine))
      ready.push_back(program.add_compute(rank, Stream::compute, kernel,
                                          {.fixed = (1 + index(rank)) * 1_us}, {}, written));
    const OpId done = program.add_collective(
        comm_lane(step), reduce, {CollectiveKind::all_reduce, all_ranks(machine), data, {}, 0},
        ready);
    for (const Rank rank : all_ranks(machine))
      program.add_compute(rank, Stream::copy, kernel, {.fixed = 1_us}, std::array{done}, read);
  }
  return program;
}

TEST(Expand, GivesTheSameNumbersWithoutARace) {
  Draw draw(7);
  const Cable cable{50.0_GBps, 1_us};
  const std::vector<Topology> machines{star(5, cable, true), ring(4, cable),
                                       load_cluster("dgx-h100", {2, 3})};
  for (const Topology& machine : machines) {
    Routing routing(machine);
    const std::int64_t elements = 97;
    const Program whole = two_steps(machine, elements);
    for (const std::string name : {"auto", "ring", "tree", "halving_doubling"}) {
      const Program program = expand_collectives(whole, routing, {.algorithm = name});
      for (const Program::Op& op : program.ops()) ASSERT_NE(op.kind, WorkKind::collective);
      const auto race = verify(program);
      ASSERT_FALSE(race) << name << ": " << describe(program, *race);
      Interpreter numbers(program);
      for (const Rank rank : all_ranks(machine))
        for (std::uint32_t b = 0; b < 2; ++b)
          numbers.buffer(rank, static_cast<Buffer>(b), elements)[3] =
              static_cast<std::int64_t>(index(rank) + 1 + b);
      numbers.run(random_order(program, draw));
      const auto n = static_cast<std::int64_t>(machine.rank_count());
      for (const Rank rank : all_ranks(machine))
        for (std::uint32_t b = 0; b < 2; ++b)
          ASSERT_EQ(numbers.buffer(rank, static_cast<Buffer>(b))[3], n * (n + 1) / 2 + n * b)
              << name << ", rank " << index(rank);
    }
  }
}

TEST(Expand, RanksWaitForTheirOwnInputsOnly) {
  // A broadcast from rank 0 down a chain: rank 0's next op need not wait for the chain's end.
  const Topology machine = star(4, {50.0_GBps, 1_us});
  Routing routing(machine);
  Program whole;
  const Label label{whole.name("step")};
  const OpId spread = whole.add_collective(
      Stream::comm, label,
      {CollectiveKind::broadcast, all_ranks(machine), part_of_buffer(0, 0, 1 << 20), {}, 0}, {});
  std::vector<OpId> after;
  for (const Rank rank : all_ranks(machine))
    after.push_back(
        whole.add_compute(rank, Stream::compute, label, {.fixed = 1_us}, std::array{spread}));
  const Program program = expand_collectives(whole, routing, {.algorithm = "ring"});
  const Roofline cost;
  const Timeline timeline = FastSimulator(routing, cost).run(program);
  const std::size_t kernels = program.size() - machine.rank_count();
  EXPECT_LT(timeline.spans[kernels].begin, timeline.spans[program.size() - 1].begin);
  EXPECT_EQ(timeline.makespan, timeline.spans[program.size() - 1].end);
}

TEST(Expand, WaitsForWhatIsBeforeItOnItsStream) {
  const Topology machine = star(2, {50.0_GBps, 1_us});
  Routing routing(machine);
  Program whole;
  const Label label{whole.name("step")};
  const auto pause = [&](Time fixed) {
    whole.add_compute(Rank{1}, Stream::comm, label, {.fixed = fixed}, {});
  };
  const auto reduce = [&] {
    whole.add_collective(
        Stream::comm, label,
        {CollectiveKind::all_reduce, all_ranks(machine), part_of_buffer(0, 0, 2), {}, 0}, {});
  };
  pause(10_us);
  reduce();
  pause(20_us);
  pause(30_us);
  reduce();
  const Roofline cost;
  FastSimulator engine(routing, cost);
  const Time sum = time_of("ring", CollectiveKind::all_reduce, machine, 8_B);
  EXPECT_EQ(engine.run(expand_collectives(whole, routing, {.algorithm = "ring"})).makespan,
            10_us + sum + 50_us + sum);
}

TEST(Expand, TakesAsLongAsTheCollectiveAlone) {
  const Topology machine = load_cluster("dgx-h100", {2, std::nullopt});
  Routing routing(machine);
  Program whole;
  const Bytes size = 4_MiB;
  whole.add_collective(
      Stream::comm, {whole.name("sum")},
      {CollectiveKind::all_reduce, all_ranks(machine), {Buffer{0}, Bytes{0}, size}, {}, 0}, {});
  const Roofline cost;
  FastSimulator engine(routing, cost);
  for (const std::string name : {"ring", "tree", "hierarchical"}) {
    const Timeline timeline =
        engine.run(expand_collectives(whole, routing, {.algorithm = name, .protocol = 2}));
    CollectiveRehearsal alone(algorithm(name), shape_of(CollectiveKind::all_reduce, machine),
                              routing, Detail::folded);
    EXPECT_EQ(timeline.makespan, alone.run(size, engine, 2).time) << name;
  }
}

}  // namespace
}  // namespace rehearse::expand_test
