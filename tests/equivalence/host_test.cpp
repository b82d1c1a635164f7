// The same trainings by threads on real memory: the bits of the interpreter, whatever the ranks
// race for. Under the thread sanitizer a missing edge would be a report.
#include <gtest/gtest.h>

#include "kernels/host/host_executor.hpp"
#include "tests/equivalence/lossless_rows.hpp"
#include "tests/equivalence/training_cases.hpp"

namespace rehearse::host_test {
namespace {

class HostTraining : public testing::TestWithParam<TrainingCase> {};

constexpr std::size_t few_steps = 4;

TrainingResult train_on_host(const SmallTraining& training, std::size_t processors) {
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
  HostExecutor executor{host, {.processors = processors}};
  TrainingResult result;
  for (std::size_t s = 0; s < few_steps; s += step.steps) {
    fill_batch(step, training.model, training.numbers, s, memory);
    executor.run(program);
    for (const double loss : read_losses(step, memory)) result.losses.push_back(loss);
  }
  result.parameters = read_parameters(step, training.model, memory);
  return result;
}

TEST_P(HostTraining, GivesTheBitsOfTheInterpreter) {
  const SmallTraining& training = GetParam().training;
  const TrainingResult expected = train_expanded(training, few_steps, "ring");
  // A thread for each worker, and ranks that take turns on two threads.
  for (const std::size_t processors : {training.ranks, std::size_t{2}}) {
    const TrainingResult told = train_on_host(training, processors);
    EXPECT_EQ(told.losses, expected.losses);
    EXPECT_EQ(told.parameters, expected.parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostTraining, testing::ValuesIn(training_cases()),
                         [](const auto& which) { return which.param.name; });

std::vector<TrainingCase> lossless_cases() {
  std::vector<TrainingCase> cases;
  for (const Row& row : rows()) cases.push_back({row.name, training_of(row)});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Lossless, HostTraining, testing::ValuesIn(lossless_cases()),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace rehearse::host_test
