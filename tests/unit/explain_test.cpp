// Explanations say what happened, with the numbers of the timeline.
#include "sim/engine/explain.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "tools/cli/engine.hpp"
#include "topology/generators.hpp"

namespace rehearse::explain_test {
namespace {

// Ranks 0 and 1 send to rank 2 at once and share its link; then rank 2 computes three times.
struct Incast {
  Topology topology = star(3, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  Program program;
  Timeline timeline;
  Paths paths;

  Incast() : paths{make(program), routing} {
    const Roofline cost;
    timeline = FastSimulator(routing, cost).run(program);
  }

  static const Program& make(Program& program) {
    std::vector<OpId> sends;
    for (const Rank source : {Rank{0}, Rank{1}}) {
      Transfer transfer;
      transfer.connection = program.connect({.source = source, .target = Rank{2}, .others = {}});
      transfer.size = transfer.wire = Bytes{1'000'000};
      sends.push_back(program.add_transfer(Stream::comm, {program.name("send"), Label::no_number},
                                           transfer, {}));
    }
    Compute work;
    work.fixed = 10_us;
    for (std::uint32_t i = 0; i < 3; ++i)
      program.add_compute(Rank{2}, Stream::compute, {program.name("gemm"), i}, work,
                          i == 0 ? sends : std::vector<OpId>{});
    return program;
  }
};

TEST(Explain, AnOpThatShared) {
  const Incast run;
  EXPECT_EQ(explain_op(run.program, run.timeline, run.paths, run.topology, OpId{1}),
            "op 1 'send' (rank 1, comm 0): from 0 ps to 202 us, 202 us\n"
            "  waited for nothing\n"
            "  moves 1 MB (1 MB on the wire) over [gpu1 -> switch0] [switch0 -> gpu2]\n"
            "  alone: 2 us of latency, then 100 us at 10 GB/s, the rate of gpu1 -> switch0\n"
            "  lost 100 us by sharing, held last by switch0 -> gpu2\n");
}

TEST(Explain, AnOpThatWaited) {
  const Incast run;
  EXPECT_EQ(explain_op(run.program, run.timeline, run.paths, run.topology, OpId{3}),
            "op 3 'gemm 1' (rank 2, compute): from 212 us to 222 us, 10 us\n"
            "  waited 212 us for its stream: op 2 'gemm 0' (rank 2, compute)\n");
}

TEST(Explain, TheCriticalPathInRuns) {
  const Incast run;
  const std::string path = explain_critical_path(run.program, run.timeline);
  EXPECT_NE(path.find("critical path: 232 us, 4 ops\n"), std::string::npos) << path;
  EXPECT_NE(path.find("202 us (87.1 %), 100 us of it lost by sharing\n"), std::string::npos)
      << path;
  EXPECT_NE(path.find("  3 × gemm on rank 2: 30 us (12.9 %)\n"), std::string::npos) << path;
  EXPECT_EQ(explain_critical_path(run.program, run.timeline, 1),
            "critical path: 232 us, 4 ops\n" +
                path.substr(path.find("  1 × send"), path.find("  3 ×") - path.find("  1 × send")) +
                "  and 1 shorter stretches: 30 us (12.9 %)\n");
}

// Three posted sends of 1 MB one behind another, then a kernel that needs the last of them.
TEST(Explain, APostedPipelineOnTheCriticalPath) {
  const Topology topology = star(2, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  Program program;
  const ConnectionId way =
      program.connect({.source = Rank{0}, .target = Rank{1}, .posted = true, .others = {}});
  OpId last{};
  for (std::uint32_t i = 0; i < 3; ++i)
    last = program.add_transfer(
        Stream::comm, {program.name("send"), i},
        {.connection = way, .size = Bytes{1'000'000}, .wire = Bytes{1'000'000}}, {});
  program.add_compute(Rank{1}, Stream::compute, {program.name("gemm")}, {.fixed = 10_us},
                      std::array{last});
  const Roofline cost;
  const Timeline timeline = FastSimulator(routing, cost).run(program);
  EXPECT_EQ(explain_op(program, timeline, Paths(program, routing), topology, OpId{1}),
            "op 1 'send 1' (rank 0, comm 0): from 100 us to 202 us, 102 us\n"
            "  waited 100 us for its stream: op 0 'send 0' (rank 0, comm 0)\n"
            "  moves 1 MB (1 MB on the wire) over [gpu0 -> switch0] [switch0 -> gpu1]\n"
            "  alone: 100 us at 10 GB/s, the rate of gpu0 -> switch0, then 2 us of latency, in "
            "which its stream is free\n");
  EXPECT_EQ(explain_critical_path(program, timeline),
            "critical path: 312 us, 4 ops\n"
            "  3 × send on rank 0: 302 us (96.8 %)\n"
            "  1 × gemm on rank 1: 10 us (3.2 %)\n");
}

TEST(Explain, TheBusiestLinks) {
  const Incast run;
  EXPECT_EQ(explain_links(run.timeline, run.topology, 2),
            "busiest links, of 3 in use:\n"
            "   86.2 % of 10 GB/s  switch0 -> gpu2  (2 MB)\n"
            "   43.1 % of 10 GB/s  gpu0 -> switch0  (1 MB)\n");
  EXPECT_EQ(explain_links(Timeline{}, run.topology), "busiest links, of 0 in use:\n");
}

TEST(Explain, QuantitiesKeepTheirUnits) {
  EXPECT_EQ(readable(Time{}), "0 ps");
  EXPECT_EQ(readable(Time::picoseconds(1'234'567)), "1.235 us");
  EXPECT_EQ(readable(Bytes{1'500}), "1.5 kB");
  EXPECT_EQ(readable(BytesPerSecond{4.5e11}), "450 GB/s");
}

TEST(Engine, IsChosenByName) {
  Incast run;
  const Roofline cost;
  EXPECT_EQ(make_engine("fast", run.routing, cost)->run(run.program), run.timeline);
  EXPECT_THROW(make_engine("slow", run.routing, cost), InputError);
#ifdef REHEARSE_HAS_SIMGRID
  EXPECT_NE(make_engine("simgrid", run.routing, cost), nullptr);
#else
  EXPECT_THROW(make_engine("simgrid", run.routing, cost), NothingToRunOn);
#endif
}

}  // namespace
}  // namespace rehearse::explain_test
