// A predictor for each thread: it remembers groups and collectives from seed to seed.
#include "strategies/predict/step_times.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/parallel.hpp"
#include "strategies/predict/predictor.hpp"

namespace rehearse {

Time StepTimes::mean() const {
  ASSERT(!steps.empty());
  // Differences from the first are small, so that no sum of them overflows.
  std::int64_t sum = 0;
  for (const Time step : steps) sum += (step - steps.front()).ps();
  return steps.front() + Time::picoseconds(sum / static_cast<std::int64_t>(steps.size()));
}

Time StepTimes::quantile(double part) const {
  ASSERT(!steps.empty() && part >= 0 && part <= 1);
  std::vector<Time> sorted = steps;
  std::sort(sorted.begin(), sorted.end());
  const auto place = static_cast<std::size_t>(std::ceil(part * static_cast<double>(steps.size())));
  return sorted[place == 0 ? 0 : place - 1];
}

StepTimes step_times(const Scenario& scenario, const Workload& workload, const Topology& topology,
                     const CostModel& cost, std::size_t threads) {
  const std::size_t seeds = scenario.imperfection.seeds;
  threads = std::clamp<std::size_t>(threads, 1, seeds);
  StepTimes times{std::vector<Time>(seeds)};
  for_each_in_parallel(threads, threads, [&](std::size_t thread) {
    StepPredictor predictor(topology, cost);
    Scenario one = scenario;
    for (std::size_t s = thread; s < seeds; s += threads) {
      one.imperfection.seed = scenario.imperfection.seed + s;
      times.steps[s] = predictor.quick(one, workload).step;
    }
  });
  return times;
}

}  // namespace rehearse
