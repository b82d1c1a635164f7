// Parameter servers run by threads on real memory. Synchronous ones leave the parameters of one
// device; asynchronous ones those of a plain loop over the updates in the order in which they were
// really applied, each computed with the parameters that its worker had really read.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/host/host_executor.hpp"
#include "tests/equivalence/server_cases.hpp"

namespace rehearse::server_test {
namespace {

ServerResult run(const SmallTraining& training, const BoundServers& servers, std::size_t runs) {
  const BoundStep& bound = servers.bound;
  HostMemory host{bound.program()};
  const RankMemory memory = [&](Rank rank, const Slice& slice) {
    host.cover(rank, slice);
    return host.at(rank, slice);
  };
  fill_parameters(bound, training.numbers, memory);
  HostExecutor executor{host};
  ServerResult result;
  for (std::size_t r = 0; r < runs; ++r) {
    fill_batch(bound, training.model, training.numbers, r * bound.steps, memory);
    result.last = executor.run(bound.program());
    for (const double loss : read_losses(bound, memory)) result.losses.push_back(loss);
  }
  result.parameters = read_parameters(bound, training.model, memory);
  return result;
}

void expect_no_race(const Program& program) {
  const std::optional<Race> race = verify(program);
  EXPECT_FALSE(race) << describe(program, *race);
}

class SynchronousServers : public testing::TestWithParam<ServerCase> {};

TEST_P(SynchronousServers, LeaveTheParametersOfOneDevice) {
  const SmallTraining training = training_of(GetParam());
  const BoundServers servers = bind_servers(training);
  expect_no_race(servers.bound.program());
  expect_one_device(training, run(training, servers, 1));
}

INSTANTIATE_TEST_SUITE_P(All, SynchronousServers, testing::ValuesIn(synchronous_cases()),
                         [](const auto& which) { return which.param.name; });

class AsynchronousServers : public testing::TestWithParam<ServerCase> {};

TEST_P(AsynchronousServers, DoWhatAPlainLoopDoesInTheSameOrder) {
  const SmallTraining training = training_of(GetParam());
  const BoundServers servers = bind_servers(training);
  expect_no_race(servers.bound.program());
  expect_replayed(training, servers, run(training, servers, 1));
}

INSTANTIATE_TEST_SUITE_P(All, AsynchronousServers, testing::ValuesIn(asynchronous_cases()),
                         [](const auto& which) { return which.param.name; });

// Whoever is allowed one step ahead is never more than that ahead of the slowest.
TEST(BoundedServers, KeepTheirBound) {
  const SmallTraining training =
      training_of({"",
                   small_mlp(),
                   OptimizerKind::sgd,
                   {.servers = 1, .mode = ServerMode::bounded, .staleness = 1}});
  const BoundServers servers = bind_servers(training);
  const ServerResult result = run(training, servers, 1);
  std::vector<std::uint32_t> done(training.ranks, 0);
  for (const auto& update : applied_order(servers.lowered, result.last)) {
    EXPECT_LE(update.step, *std::min_element(done.begin(), done.end()) + 2);
    done[update.worker] = update.step + 1;
  }
}

TEST(ServerTraining, Learns) {
  for (const ServerMode mode : {ServerMode::synchronous, ServerMode::asynchronous}) {
    SmallTraining training =
        training_of({"", small_mlp(), OptimizerKind::sgd, {.servers = 2, .mode = mode}});
    training.scenario.training.global_batch_size = 32;
    training.numbers.learning_rate = mode == ServerMode::synchronous ? 0.5 : 0.2;
    const BoundServers servers = bind_servers(training);
    // In which order workers come is the machine's own affair, so one batch says little.
    const bool is_ordered = mode == ServerMode::synchronous;
    const ServerResult result = run(training, servers, is_ordered ? 20 : 60);
    const std::ptrdiff_t last = is_ordered ? 1 : 10;
    const double loss = std::accumulate(result.losses.end() - last, result.losses.end(), 0.0) /
                        static_cast<double>(last);
    EXPECT_GT(result.losses.front(), 2.0);
    EXPECT_LT(loss, is_ordered ? 1.1 : 0.9) << static_cast<int>(mode);
  }
}

// The edge that a forward pass has to the pull before it is all that keeps it from half old
// parameters.
TEST(ServerTraining, AMissingEdgeIsFound) {
  BoundServers servers = bind_servers(training_of(
      {"", small_mlp(), OptimizerKind::sgd, {.servers = 1, .mode = ServerMode::asynchronous}}));
  Program program = servers.bound.program();
  for (std::size_t i = 0; i < program.size(); ++i) {
    const ServerNote& note = servers.lowered.notes[i];
    if (note.work != ServerNote::Work::forward || note.step != 1 || note.worker != 2) continue;
    program.set_after(static_cast<OpId>(i), {});
    break;
  }
  const std::optional<Race> race = verify(program);
  ASSERT_TRUE(race);
  EXPECT_EQ(race->rank, servers.plan.workers[2]);
  EXPECT_EQ(race->buffer, ServerBuffers::parameters);
}

}  // namespace
}  // namespace rehearse::server_test
