// The same trainings by threads on real memory: the bits of the interpreter, whatever the ranks
// race for. Under the thread sanitizer a missing edge would be a report.
#include <gtest/gtest.h>

#include "kernels/host_executor.hpp"
#include "tests/equivalence/training_cases.hpp"

namespace rehearse {
namespace {

class HostTraining : public testing::TestWithParam<TrainingCase> {};

TEST_P(HostTraining, GivesTheBitsOfTheInterpreter) {
  const SmallTraining& training = GetParam().training;
  const BoundStep step = bound_step(training);
  const Topology topology = calm_star(training.ranks, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  const Program program = expand_collectives(step.program(), routing, {.algorithm = "ring"});
  HostMemory host{program};
  const RankMemory memory = [&](Rank rank, const Slice& slice) {
    host.cover(rank, slice);
    return host.at(rank, slice);
  };
  fill_parameters(step, training.numbers, memory);
  HostExecutor executor{host};
  std::vector<double> losses;
  constexpr std::size_t steps = 4;
  for (std::size_t s = 0; s < steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, memory);
    executor.run(program);
    for (const double loss : read_losses(step, memory)) losses.push_back(loss);
  }
  const TrainingResult expected = train_expanded(training, steps, "ring");
  EXPECT_EQ(losses, expected.losses);
  EXPECT_EQ(read_parameters(step, training.model, memory), expected.parameters);
}

INSTANTIATE_TEST_SUITE_P(All, HostTraining, testing::ValuesIn(training_cases()),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace rehearse
