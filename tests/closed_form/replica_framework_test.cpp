// What frameworks of data parallelism add to a step: operators of their updates, the slowest of
// their replicas, launches behind sums that the host waits for.
#include <gtest/gtest.h>

#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/framework.hpp"
#include "sim/workload/model_presets.hpp"
#include "strategies/layers/optimizer.hpp"
#include "strategies/plan/step_plan.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse::replica_framework_test {
namespace {

std::size_t framework_called(std::string_view name) {
  return static_cast<std::size_t>(find_framework(name) - frameworks().data());
}

// An optimizer of operators one after the other moves its bytes for each parameter once a step, and
// nothing else differs on one device.
TEST(Frameworks, ChainsOfTheUpdateMoveMemoryOnceAStep) {
  const Topology one = load_cluster("dgx-1", {1, 1});
  const Workload model = preset("resnet-50");
  const ShapedRoofline cost;
  const Accelerator& device = one.accelerators.front();
  const double rate = device.memory_bandwidth.count() * device.memory_efficiency;
  const double moved =
      find_framework("pytorch")->update_bytes * static_cast<double>(model.parameters()) / rate;
  for (const std::size_t batch : {32, 64}) {
    Scenario scenario;
    scenario.training = {.micro_batch_size = 32, .global_batch_size = batch};
    scenario.training.precision = Precision::fp32;
    const Time without = StepPredictor(one, cost).quick(scenario, model).step;
    scenario.training.framework = framework_called("pytorch");
    const Time with = StepPredictor(one, cost).quick(scenario, model).step;
    EXPECT_NEAR((with - without).seconds().count(), moved, 1e-9);
  }
}

// 48 bytes a parameter where a fused SGD with a moment moves 20, 28 in place of 12 without one;
// what AMP and Adam do beside it is the framework's figure, and MXNet has one kernel for all.
TEST(Frameworks, SgdInFp32IsCountedByItsOperators) {
  const auto added = [](const char* framework, OptimizerKind optimizer, Precision precision) {
    Training training{.precision = precision, .optimizer = optimizer};
    const auto traffic = [&] {
      return std::get<Compute>(optimizer_pieces(training, 1000).back().work).traffic.count();
    };
    const std::int64_t fused = traffic();
    training.framework = framework_called(framework);
    return static_cast<double>(traffic() - fused) / 1000;
  };
  const double fitted = find_framework("pytorch")->update_bytes;
  EXPECT_EQ(added("pytorch", OptimizerKind::momentum, Precision::fp32), 48 - 20);
  EXPECT_EQ(added("pytorch", OptimizerKind::sgd, Precision::fp32), 28 - 12);
  EXPECT_EQ(added("pytorch", OptimizerKind::momentum, Precision::fp16), fitted);
  EXPECT_EQ(added("pytorch", OptimizerKind::adam, Precision::fp32), fitted);
  EXPECT_EQ(added("mxnet", OptimizerKind::momentum, Precision::fp32), 0);
}

// The slowest of n replicas is later by spread × E(largest of n draws): 0.5642 of 2 (1 /
// √π), 1.0294 of 4; what their network takes comes on top.
TEST(Frameworks, StepsTakeAsLongAsTheSlowestReplica) {
  const EqualLayers model{.count = 3, .width = 64};
  const Equal cost{10_us};
  const auto kernels = [&](std::size_t replicas, std::size_t framework) {
    Scenario scenario = model.scenario(2);
    scenario.training.framework = framework;
    scenario.training.global_batch_size = replicas * scenario.training.micro_batch_size;
    const StepPlan plan = plan_step(scenario, model.workload(), replicas, Accelerator{}, cost);
    Time sum;
    for (const TapeStep& step : plan.works[0].forward.steps) sum += step.time;
    return sum.seconds().count();
  };
  const std::size_t with = framework_called("mxnet");
  const double spread = find_framework("mxnet")->spread;
  EXPECT_DOUBLE_EQ(kernels(1, with), kernels(1, 0));
  EXPECT_NEAR(kernels(2, with) / kernels(2, 0), 1 + spread * 0.5642, 1e-6);
  EXPECT_NEAR(kernels(4, with) / kernels(4, 0), 1 + spread * 1.0294, 1e-6);
  EXPECT_NEAR(kernels(3, with) / kernels(3, 0), 1 + spread * (0.5642 + 1.0294) / 2, 1e-6);
}

// A host that waits for the sums of gradients launches 3 operators for each of 4 tensors behind
// them, or 6 in 16 bits, to a device that has nothing else to do. One replica has no sums, and a
// graph no launches. Kernels of 10 ms leave the host far ahead of all others.
TEST(Frameworks, AHostThatWaitsForSumsLaunchesTheUpdateBehindThem) {
  const EqualLayers model{.count = 3, .width = 64};
  const Equal cost{10000_us};
  Scenario scenario = model.scenario(1);
  scenario.training.framework = framework_called("paddle");
  const auto added = [&](std::size_t replicas, Precision precision) {
    const Topology machine = free_star(replicas);
    StepPredictor predictor(machine, cost);
    scenario.training.precision = precision;
    scenario.training.cuda_graph = true;
    const Time without = predictor.quick(scenario, model.workload()).step;
    scenario.training.cuda_graph = false;
    scenario.training.launch_time = 10_us;
    const Time with = predictor.quick(scenario, model.workload()).step;
    EXPECT_EQ(with, predictor.predict(scenario, model.workload(), {}).prediction.step);
    return with - without;
  };
  EXPECT_EQ(added(2, Precision::fp32), 3 * 4 * 10_us);
  EXPECT_EQ(added(4, Precision::fp16), 6 * 4 * 10_us);
  EXPECT_EQ(added(1, Precision::fp32), Time{});
  scenario.training.framework = framework_called("pytorch");
  EXPECT_EQ(added(2, Precision::fp32), Time{});
}

}  // namespace
}  // namespace rehearse::replica_framework_test
