// Exchanges beside kernels inside a layer: the backward pass of a column split sums the input's
// gradient beside the product for its weights, and whoever needs the sum waits for both.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/collectives.hpp"
#include "tests/support/training.hpp"

namespace rehearse::layer_overlap_test {
namespace {

constexpr Time product = 30_us, weights = 20_us;
const EqualLayers model{.count = 5, .width = 512, .samples = 64};

class LayerOverlap : public testing::Test {
 protected:
  static Scenario scenario() {
    Scenario scenario = model.scenario(1);
    scenario.parallelism.tensor = 2;
    scenario.collectives = {.all_reduce = "ring", .all_gather = "ring"};
    return scenario;
  }
  static Topology machine(double gigabytes_per_second, double share) {
    Topology machine = calm_star(2, {BytesPerSecond{gigabytes_per_second * 1e9}, 1_us});
    machine.accelerators.front().communication_share = share;
    return machine;
  }
  static Prediction predict(const Topology& machine, const StepPredictor::Detail& detail) {
    const ProductCost cost(product, weights, model.samples);
    return StepPredictor(machine, cost).predict(scenario(), model.workload(), detail).prediction;
  }
  static std::size_t splits_with_sum() {  // by columns, and with a gradient of their input
    const Workload workload = model.workload();
    std::size_t count = 0;
    for (const Layer& layer : workload.layers) {
      const Dense& dense = std::get<Dense>(layer.shape);
      count += !dense.first && !dense.row;
    }
    return count;
  }
  static Time rest(const Topology& machine) {  // what no kernel hides
    const Workload workload = model.workload();
    Time time = static_cast<std::int64_t>(model.count) * (2 * product);
    time += (static_cast<std::int64_t>(model.count) - columns()) * weights;
    for (const Layer& layer : workload.layers) {
      const Dense& dense = std::get<Dense>(layer.shape);
      if (dense.row)
        time += time_of("ring", CollectiveKind::all_reduce, machine, model.activation());
      else if (dense.last)
        time += time_of("ring", CollectiveKind::all_gather, machine, model.activation());
    }
    return time;
  }
  static std::int64_t columns() { return static_cast<std::int64_t>(splits_with_sum()); }
};

TEST_F(LayerOverlap, TheLongerOneCounts) {
  ASSERT_EQ(columns(), 2);
  for (const double rate : {0.5, 2.0, 3.4, 3.6, 10.0, 100.0}) {
    const Topology calm = machine(rate, 0);
    const Time sum = time_of("ring", CollectiveKind::all_reduce, calm, model.activation());
    const Prediction told = predict(calm, {});
    EXPECT_EQ(told.step, rest(calm) + columns() * std::max(weights, sum)) << rate << " GB/s";
    const Time hidden = columns() * std::min(weights, sum);
    const auto tensor = static_cast<std::size_t>(Dimension::tensor);
    const RoleReport& role = told.roles.front();
    EXPECT_EQ(role.communication[tensor] - role.time.exposed[tensor], hidden);
  }
}

// A quarter of the device is taken while the sum is under way: what it then lacks comes after.
TEST_F(LayerOverlap, TheSumSlowsTheKernelBesideIt) {
  for (const double rate : {0.5, 2.0, 5.0, 10.0, 100.0}) {
    const Topology shared = machine(rate, 0.25);
    const Time sum = time_of("ring", CollectiveKind::all_reduce, shared, model.activation());
    const std::int64_t done = sum.ps() * 768 / 1024;
    const Time kernel = Time::picoseconds(sum.ps() + weights.ps() - done);
    const Time both = weights.ps() <= done ? sum : kernel;
    EXPECT_EQ(predict(shared, {}).step, rest(shared) + columns() * both) << rate << " GB/s";
  }
}

TEST_F(LayerOverlap, InBlocksToo) {
  for (const double share : {0.0, 0.1, 0.25, 1.0 / 3})
    for (const double rate : {0.5, 2.0, 5.0, 10.0, 100.0}) {
      const Topology both = machine(rate, share);
      const Prediction kernels = predict(both, {});
      const Prediction blocks = predict(both, {.grain = Grain::blocks});
      EXPECT_EQ(kernels.step, blocks.step) << rate << " GB/s, share " << share;
      EXPECT_EQ(kernels.mean, blocks.mean);
      EXPECT_EQ(kernels.roles[0].communication, blocks.roles[0].communication);
      EXPECT_LT(blocks.simulation.ops, kernels.simulation.ops / 4);
    }
}

}  // namespace
}  // namespace rehearse::layer_overlap_test
