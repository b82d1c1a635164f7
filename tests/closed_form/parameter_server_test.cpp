// Parameter servers against their limits: the round trip of a worker alone, the server's network,
// the slowest worker, and who is how stale.
#include <gtest/gtest.h>

#include "sim/program/verify.hpp"
#include "tests/support/servers.hpp"

namespace rehearse::parameter_server_test {
namespace {

constexpr Time alpha = 4_us;  // two cables of 2 us
const Cable cable{1.0_GBps, 2_us};

Time wire(Bytes size) { return Time::round(size / cable.bandwidth); }

struct Sums {
  Time compute;                  // of a worker's step
  Time apply, read, accumulate;  // of a server's part of all buckets
  Bytes pushed, pulled;
};
Sums sums_of(const ServerPlan& plan, std::size_t worker = 0, std::size_t server = 0) {
  Sums sums;
  for (const ServerBucket& bucket : plan.buckets) {
    sums.compute += bucket.forward[plan.kind[worker]] + bucket.backward[plan.kind[worker]];
    const ServerPart& part = bucket.parts[server];
    sums.apply += part.apply, sums.read += part.read, sums.accumulate += part.accumulate;
    sums.pushed += part.pushed, sums.pulled += part.pulled;
  }
  return sums;
}

Time step_of(const ServerAnswer& answer, std::size_t worker, std::size_t step) {
  const auto& steps = answer.lowered.steps[worker];
  const auto end = [&](std::size_t s) { return answer.timeline.spans[index(steps[s].end)].end; };
  return end(step) - (step == 0 ? Time{} : end(step - 1));
}

TEST(ParameterServer, AWorkerAloneTakesARoundTrip) {
  for (const ServerMode mode : {ServerMode::synchronous, ServerMode::asynchronous}) {
    const ServerAnswer answer =
        serve(served({.servers = 1, .mode = mode, .steps = 5}), hosts(2, cable));
    const Sums sums = sums_of(answer.plan);
    ASSERT_GT(sums.compute, 1_us);
    ASSERT_GT(sums.apply, 1_us);
    // A synchronous server adds the one gradient and sends its own parameters, without a copy.
    const Time served =
        mode == ServerMode::synchronous ? sums.accumulate + sums.apply : sums.apply + sums.read;
    Time trip = sums.compute + (alpha + wire(sums.pushed)) + served + 2 * alpha +
                (alpha + wire(sums.pulled));
    // It acknowledges what it has added, and applies it while the next request is on its way.
    if (mode == ServerMode::synchronous) trip = trip - std::min(sums.apply, 2 * alpha);
    for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(step_of(answer, 0, k), trip) << k;
    EXPECT_EQ(answer.report.staleness.most, 0);
    EXPECT_EQ(answer.report.gradients, 5u);
  }
}

TEST(ParameterServer, ASynchronousRoundIsBoundByTheServersNetwork) {
  for (const std::size_t workers : {2, 4, 8}) {
    const ServerAnswer answer =
        serve(served({.servers = 1, .steps = 3}), hosts(workers + 1, cable));
    const Sums sums = sums_of(answer.plan);
    const auto w = static_cast<std::int64_t>(workers);
    // All push at once, are added one after another, and pull at once: W (G + P) / beta.
    const Time gradients = Time::round(w * sums.pushed / cable.bandwidth),
               parameters = Time::round(w * sums.pulled / cable.bandwidth);
    const Time round = sums.compute + gradients + alpha + w * sums.accumulate + parameters + alpha;
    const Time slack = sums.apply + 2 * alpha;  // of which one hides the other
    const Time step = step_of(answer, 0, 1);
    EXPECT_GE(step, round + std::max(sums.apply, 2 * alpha) - Time::picoseconds(2));
    EXPECT_LE(step, round + slack);
  }
}

// With W >= S servers the bound is W (G + P) / (S beta): halved with every doubling.
TEST(ParameterServer, ShardingMovesTheBoundOfTheNetwork) {
  const Cable slow{BytesPerSecond{1e7}, Time{}};
  std::vector<double> rounds;
  for (const std::size_t servers : {1, 2, 4, 8}) {
    const ServerAnswer answer =
        serve(served({.servers = servers, .steps = 2}), hosts(8 + servers, slow));
    const Sums sums = sums_of(answer.plan);
    const double bound =
        (8 * (sums.pushed + sums.pulled) / slow.bandwidth).count();  // of one server's part
    const double step = step_of(answer, 0, 1).seconds().count();
    EXPECT_GE(step, bound);
    EXPECT_LE(step, bound * 1.01);
    rounds.push_back(step);
  }
  for (std::size_t i = 1; i < rounds.size(); ++i)
    EXPECT_NEAR(rounds[i - 1] / rounds[i], 2, 0.03) << i;
}

TEST(ParameterServer, AnAsynchronousServerTakesNoMoreThanItsNetworkBrings) {
  const Cable slow{BytesPerSecond{1e7}, 1_us};
  for (const std::size_t servers : {1, 2, 4}) {
    const ServerAnswer answer =
        serve(served({.servers = servers, .mode = ServerMode::asynchronous, .steps = 20}),
              hosts(16 + servers, slow));
    const Sums sums = sums_of(answer.plan);
    const double most = 1 / (sums.pushed / slow.bandwidth).count();
    EXPECT_LE(answer.report.updates_per_second, most * (1 + 1e-9));
    EXPECT_GE(answer.report.updates_per_second, most * 0.45);  // pushing and pulling take turns
  }
}

TEST(ParameterServer, ASynchronousStepIsThatOfTheSlowestWorker) {
  const Cable fast{BytesPerSecond{1e15}, Time{}};
  const ServerAnswer even = serve(served({.servers = 1, .steps = 3}), hosts(5, fast));
  const ServerAnswer one_slow = serve(served({.servers = 1, .steps = 3}), hosts(5, fast, 1));
  const Sums quick = sums_of(one_slow.plan, 1), slow = sums_of(one_slow.plan, 0);
  ASSERT_GT(slow.compute, 2 * quick.compute);
  // The others' gradients have come and been added by the time the slow one's comes.
  const auto pushes = [&](std::int64_t count) {
    return Time::round(count * slow.pushed / fast.bandwidth);
  };
  EXPECT_EQ(step_of(one_slow, 1, 1) - slow.compute - slow.accumulate - pushes(1),
            step_of(even, 1, 1) - quick.compute - 4 * quick.accumulate - pushes(4));
  for (std::size_t w = 0; w < 4; ++w) EXPECT_EQ(step_of(one_slow, w, 1), step_of(one_slow, 0, 1));
  EXPECT_EQ(one_slow.report.staleness.most, 0);
}

TEST(ParameterServer, AnAsynchronousRunGoesOnWithoutTheSlowOne) {
  const Cable fast{BytesPerSecond{1e15}, Time{}};
  ParameterServer how{.servers = 1, .steps = 40};
  const ServerAnswer waiting = serve(served(how), hosts(3, fast, 1));
  how.mode = ServerMode::asynchronous;
  const ServerAnswer going = serve(served(how), hosts(3, fast, 1));
  EXPECT_GT(going.report.updates_per_second, 1.5 * waiting.report.updates_per_second);
  // Two workers: what one of them misses is what the other did meanwhile.
  const double ratio =
      step_of(going, 0, 3).seconds().count() / step_of(going, 1, 3).seconds().count();
  EXPECT_GT(ratio, 2);
  EXPECT_LE(going.report.staleness.most, std::ceil(ratio));
  EXPECT_GE(going.report.staleness.most, std::floor(ratio) - 1);
}

TEST(ParameterServer, ABoundHoldsTheQuickOnesBack) {
  const Cable fast{BytesPerSecond{1e15}, 1_us};
  for (const std::size_t bound : {1, 2, 5}) {
    const ServerAnswer answer =
        serve(served({.servers = 2, .mode = ServerMode::bounded, .staleness = bound, .steps = 30}),
              hosts(6, fast, 1));
    const auto& slow = answer.lowered.steps[0];
    bool touched = false;
    for (std::size_t w = 1; w < answer.lowered.steps.size(); ++w)
      for (std::size_t k = bound + 1; k < 30; ++k) {
        // It works on step k only when the slow one has finished step k - 1 - bound.
        const OpId begin = answer.lowered.steps[w][k].begin;
        ASSERT_NE(slow[k - 1 - bound].begin, no_op);
        const Time finished = answer.timeline.spans[index(slow[k - 1 - bound].begin)].end;
        EXPECT_GE(answer.timeline.spans[index(begin)].begin, finished);
        touched = touched || wait_of(answer.lowered.program, answer.timeline, begin) == Wait::input;
      }
    EXPECT_TRUE(touched);
    // In the long run everybody goes at the pace of the slow one.
    EXPECT_NEAR(step_of(answer, 1, 25).seconds().count(), step_of(answer, 0, 25).seconds().count(),
                0.05 * step_of(answer, 0, 25).seconds().count());
  }
  ParameterServer loose{.servers = 1, .mode = ServerMode::bounded, .staleness = 1000, .steps = 20};
  const ServerAnswer unbound = serve(served(loose), hosts(6, fast, 1));
  loose.mode = ServerMode::asynchronous, loose.staleness = std::nullopt;
  EXPECT_EQ(serve(served(loose), hosts(6, fast, 1)).report, unbound.report);
}

TEST(ParameterServer, PipeliningHidesPushesBehindTheBackwardPass) {
  const ServerAnswer plain = serve(served({.servers = 1, .steps = 4}), hosts(2, cable));
  const ServerAnswer piped = serve(
      served({.servers = 1, .protocol = ServerProtocol::pipelined, .steps = 4}), hosts(2, cable));
  EXPECT_EQ(plain.plan.buckets.size(), 1u);
  EXPECT_EQ(piped.plan.buckets.size(), 7u);  // the free first layer is one too
  EXPECT_LT(step_of(piped, 0, 2), step_of(plain, 0, 2));
  const Sums sums = sums_of(piped.plan);
  // All bytes still cross the cable, one bucket after another, in each direction.
  EXPECT_GE(step_of(piped, 0, 2), wire(sums.pushed) + wire(sums.pulled) + 2 * alpha);
}

TEST(ParameterServer, SparseUpdatesAndIncrementalPullsSendWhatChanged) {
  Scenario scenario = served({.servers = 1, .mode = ServerMode::asynchronous, .sparsity = 0.99});
  const Topology machine = hosts(5, cable);
  const ServerAnswer sparse = serve(scenario, machine);
  const auto parameters = static_cast<double>(served_model.parameters());
  // 2 bytes of a value and 4 of its index for one in a hundred.
  const Bytes pushed{6 * static_cast<std::int64_t>(std::ceil(parameters * (1 - 0.99)))};
  EXPECT_EQ(sums_of(sparse.plan).pushed, pushed);
  EXPECT_EQ(sums_of(sparse.plan).pulled, Bytes{2 * served_model.parameters()});
  scenario.parameter_server.incremental_pulls = true;
  const double changed = 1 - std::pow(0.99, 4);  // by four workers, each at random
  EXPECT_EQ(sums_of(serve(scenario, machine).plan).pulled,
            Bytes{6 * static_cast<std::int64_t>(std::ceil(parameters * changed))});
}

// One worker of four computes at half speed, and the network is quick. Who waits for all of them
// goes at its pace; who waits for nobody loses an eighth.
TEST(ParameterServer, AStragglerHoldsUpOnlyThoseWhoWait) {
  const Cable quick{1000.0_GBps, Time{}};
  const auto rate = [&](ServerMode mode, bool straggles) {
    Scenario scenario = served({.servers = 1, .mode = mode, .steps = 40});
    if (straggles) scenario.imperfection = {.slow_ranks = {2}, .slow_rank_factor = 2};
    return serve(scenario, hosts(5, quick)).report.updates_per_second;
  };
  const double waits = rate(ServerMode::synchronous, true) / rate(ServerMode::synchronous, false);
  const double goes_on =
      rate(ServerMode::asynchronous, true) / rate(ServerMode::asynchronous, false);
  EXPECT_NEAR(waits, 0.5, 0.05);
  EXPECT_NEAR(goes_on, 3.5 / 4, 0.03);
}

}  // namespace
}  // namespace rehearse::parameter_server_test
