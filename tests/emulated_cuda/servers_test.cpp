// Parameter servers on 2, 4 and 8 emulated GPUs, which take what comes first: synchronous ones
// leave the parameters of one device, asynchronous and bounded ones those of a plain loop in the
// order in which the run says that updates were applied. Another seed is another order.
#include <set>

#include "kernels/cuda/cuda_executor.hpp"
#include "sim/base/error.hpp"
#include "sim/program/kernel_list.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/emulated_cuda/sparing.hpp"
#include "tests/equivalence/server_cases.hpp"
#include "tools/measure/cuda_places.hpp"

namespace rehearse::servers_test {
namespace {

constexpr std::uint64_t seeds = 20;
ServerResult run_on_gpus(const SmallTraining& training, const BoundServers& servers,
                         std::size_t devices, std::uint64_t seed) {
  emulated_cuda::reset({.devices = static_cast<int>(devices),
                        .memory = 16 << 20,
                        .seed = seed,
                        .peers = seed % 5 > 0});
  const BoundStep& bound = servers.bound;
  std::vector<int> device_of;
  for (std::size_t rank = 0; rank < training.ranks; ++rank)
    device_of.push_back(static_cast<int>(rank % devices));
  ServerResult result;
  {
    const CudaMemory memory{bound.program(), device_of, places_of(bound)};
    StagedCudaMemory staged{memory};
    const RankMemory at = [&](Rank rank, const Slice& slice) { return staged.at(rank, slice); };
    fill_parameters(bound, training.numbers, at);
    fill_batch(bound, training.model, training.numbers, 0, at);
    staged.store();
    result.last = CudaExecutor{memory}.run(bound.program());
    for (const double loss : read_losses(bound, at)) result.losses.push_back(loss);
    result.parameters = read_parameters(bound, training.model, at);
  }
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
  return result;
}

/// Each case on every machine, each time under another seed.
template <class Check>
void on_all_machines(const ServerCase& which, Check check) {
  const SmallTraining training = training_of(which);
  const BoundServers servers = bind_servers(training);
  if (is_sparing() && training.model.name != "mlp") GTEST_SKIP() << "slow under the sanitizer";
  std::uint64_t seed = std::hash<std::string>{}(which.name);
  for (const std::size_t devices : {2, 4, 8}) {
    // Transformers are slow: each on one machine.
    if ((is_sparing() || training.model.name != "mlp") && devices != training.ranks) continue;
    ++seed;
    SCOPED_TRACE(std::to_string(training.ranks) + " ranks on " + std::to_string(devices) +
                 " GPUs, seed " + std::to_string(1 + seed % seeds));
    check(training, servers, run_on_gpus(training, servers, devices, 1 + seed % seeds));
  }
}

class SynchronousGpuServers : public testing::TestWithParam<ServerCase> {};

TEST_P(SynchronousGpuServers, LeaveTheParametersOfOneDevice) {
  on_all_machines(GetParam(),
                  [](const SmallTraining& training, const BoundServers&,
                     const ServerResult& result) { expect_one_device(training, result); });
}

INSTANTIATE_TEST_SUITE_P(All, SynchronousGpuServers, testing::ValuesIn(synchronous_cases()),
                         [](const auto& which) { return which.param.name; });

class AsynchronousGpuServers : public testing::TestWithParam<ServerCase> {};

TEST_P(AsynchronousGpuServers, DoWhatAPlainLoopDoesInTheSameOrder) {
  on_all_machines(GetParam(), expect_replayed);
}

INSTANTIATE_TEST_SUITE_P(All, AsynchronousGpuServers, testing::ValuesIn(asynchronous_cases()),
                         [](const auto& which) { return which.param.name; });

SmallTraining bounded_training() {
  return training_of({"",
                      small_mlp(),
                      OptimizerKind::sgd,
                      {.servers = 1, .mode = ServerMode::bounded, .staleness = 1}});
}

// Over 20 seeds: whoever is allowed one step ahead is never more than that ahead of the slowest,
// and who comes first is not always the same.
TEST(BoundedGpuServers, KeepTheirBoundInManyOrders) {
  const SmallTraining training = bounded_training();
  const BoundServers servers = bind_servers(training);
  std::set<std::vector<OpId>> orders;
  for (std::uint64_t seed = 1; seed <= (is_sparing() ? 3 : seeds) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ServerResult result = run_on_gpus(training, servers, std::size_t{2} << seed % 3, seed);
    expect_replayed(training, servers, result);
    std::vector<std::uint32_t> done(training.ranks, 0);
    std::vector<OpId> order;
    for (const auto& update : applied_order(servers.lowered, result.last)) {
      EXPECT_LE(update.step, *std::min_element(done.begin(), done.end()) + 2);
      done[update.worker] = update.step + 1;
      order.push_back(update.apply);
    }
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 1U);
}

// On a queue what arrives first is served first, wherever it stands in the program.
TEST(GpuQueues, FirstComeFirstServed) {
  emulated_cuda::reset({.devices = 1});
  Program program;
  const auto compute = [&](Stream stream, const char* name, std::span<const OpId> after,
                           std::size_t calls) {
    KernelCall zero;
    zero.kernel = Kernel::zero;
    zero.operands = 1;
    const std::vector<KernelCall> all(calls, zero);
    std::vector<Access> accesses;
    for (std::size_t i = 0; i < calls; ++i)
      accesses.push_back(
          {{Buffer{static_cast<std::uint32_t>(index(stream))}, Bytes{0}, Bytes{64}}, true});
    return program.add_compute(Rank{0}, stream, {program.name(name)}, {}, after, accesses, all);
  };
  const OpId slow = compute(Stream::compute, "slow", {}, 500);
  const OpId fast = compute(Stream::copy, "fast", {}, 1);
  const OpId late = compute(queue_lane(0), "late", {{slow}}, 1);
  const OpId early = compute(queue_lane(0), "early", {{fast}}, 1);
  const OpId last = compute(Stream::copy, "last", {{late, early}}, 1);
  Timeline done;
  {
    const CudaMemory memory{program, {0}};
    done = CudaExecutor{memory}.run(program);
  }
  EXPECT_LE(done.spans[index(early)].end, done.spans[index(late)].begin);
  EXPECT_LT(done.spans[index(early)].end, done.spans[index(slow)].end);
  EXPECT_GE(done.spans[index(last)].begin, done.spans[index(late)].end);
  EXPECT_EQ(emulated_cuda::leaks(), "");
}

// Served as it arrives, a fault on the way is still one line.
TEST(GpuQueues, AFaultIsOneLine) {
  const SmallTraining training = bounded_training();
  const BoundServers servers = bind_servers(training);
  emulated_cuda::reset({.devices = 2, .faults = {.failing_launch = 60}});
  const CudaMemory memory{servers.bound.program(), {0, 1, 0, 1}, places_of(servers.bound)};
  EXPECT_THROW(CudaExecutor{memory}.run(servers.bound.program()), DeviceError);
}

}  // namespace
}  // namespace rehearse::servers_test
