// Runs with parameter servers of all kinds: folded equals unfolded, no race, both engines.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/program/verify.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/servers.hpp"

namespace rehearse::parameter_server_test {
namespace {

struct Case {
  Scenario scenario;
  Topology machine;
};

Case random_case(Draw& draw) {
  ParameterServer how{.servers = draw.between(1, 4),
                      .placement = static_cast<ServerPlacement>(draw.below(2)),
                      .sharding = draw.once_in(4) ? ServerSharding::layers : ServerSharding::even,
                      .protocol = static_cast<ServerProtocol>(draw.below(2)),
                      .mode = static_cast<ServerMode>(draw.below(3)),
                      .steps = draw.between(1, 6),
                      .sparsity = draw.of<double>({0, 0, 0.9})};
  if (how.mode == ServerMode::bounded) how.staleness = draw.between(1, 3);
  how.incremental_pulls = how.sparsity > 0 && draw.once_in(2);
  const std::size_t workers = draw.between(std::size_t{4}, 7);
  const Cable cable{BytesPerSecond{draw.of<double>({1e8, 1e9, 1.25e10})},
                    draw.of<Time>({Time{}, 2_us, 50_us})};
  const std::size_t count =
      workers + (how.placement == ServerPlacement::dedicated ? how.servers : 0);
  Case out{served(how), hosts(count, cable, draw.below(3))};
  out.scenario.training.global_batch_size *= draw.between(1, 2);
  return out;
}

TEST(ParameterServerProperty, FoldedEqualsUnfoldedAndNothingRaces) {
  std::size_t folded = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw{seed};
    const Case c = random_case(draw);
    const ServerAnswer one = serve(c.scenario, c.machine),
                       all = serve(c.scenario, c.machine, false);
    ASSERT_EQ(verify(all.lowered.program), std::nullopt);
    folded += one.lowered.stands_for > 1;
    ASSERT_EQ(one.timeline.makespan, all.timeline.makespan);
    for (std::size_t w = 0; w < one.lowered.steps.size(); ++w)
      for (std::size_t k = 0; k < one.lowered.steps[w].size(); ++k)
        ASSERT_EQ(one.timeline.spans[index(one.lowered.steps[w][k].end)].end,
                  all.timeline.spans[index(all.lowered.steps[w][k].end)].end)
            << "worker " << w << " step " << k;
    ASSERT_EQ(one.report.gradients, all.report.gradients);
    ASSERT_EQ(one.report.staleness.most, all.report.staleness.most);
    ASSERT_NEAR(one.report.busy, all.report.busy, 1e-9);
    ASSERT_NEAR(one.report.queue_length, all.report.queue_length, 1e-9);
  }
  EXPECT_GT(folded, 20u) << "the test has lost its bite";
}

TEST(ParameterServerProperty, StalenessIsWithinItsBoundAndCountsEveryPush) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw{seed};
    const Case c = random_case(draw);
    const ServerAnswer answer = serve(c.scenario, c.machine);
    const ServerReport& told = answer.report;
    std::uint64_t counted = 0;
    for (const std::uint64_t pushes : told.stale) counted += pushes;
    ASSERT_EQ(counted, told.staleness.count);
    ASSERT_LE(told.gradients, answer.plan.workers.size() * answer.plan.how.steps);
    ASSERT_LE(told.busiest, 1 + 1e-9);
    ASSERT_LE(told.computing, 1 + 1e-9);
    const auto others = static_cast<double>(answer.plan.workers.size() - 1);
    if (answer.plan.how.mode == ServerMode::synchronous) {
      ASSERT_EQ(told.staleness.most, 0);
    } else if (answer.plan.how.mode == ServerMode::bounded) {
      // A worker and another that is s steps ahead or behind: at most 2 s + 1 of its updates.
      const auto bound = static_cast<double>(*answer.plan.how.staleness);
      ASSERT_LE(told.staleness.most, others * (2 * bound + 1));
    }
  }
}

}  // namespace
}  // namespace rehearse::parameter_server_test
