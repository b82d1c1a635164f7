// Steps of a run by their kind.
#include "tools/predict/local_summary.hpp"

#include <fmt/format.h>

#include "strategies/predict/local_average.hpp"
#include "tools/output/chart.hpp"

namespace rehearse {

LocalStepMeans local_step_means(const Scenario& scenario, const StepProgram& step,
                                const Timeline& timeline) {
  const std::vector<LocalStep> schedule = local_schedule(scenario.local_sgd);
  const std::vector<Time> times = local_step_times(step, timeline);
  ASSERT(times.size() == schedule.size());
  LocalStepMeans means;
  for (std::size_t k = 0; k < times.size(); ++k) {
    LocalStepMeans::Kind& kind = schedule[k] == LocalStep::synchronous ? means.synchronous
                                 : schedule[k] == LocalStep::local     ? means.local
                                                                       : means.averaging;
    ++kind.steps;
    kind.mean += times[k].seconds().count();
  }
  for (LocalStepMeans::Kind* kind : {&means.synchronous, &means.local, &means.averaging})
    if (kind->steps > 0) kind->mean /= static_cast<double>(kind->steps);
  return means;
}

std::vector<std::pair<std::string, std::string>> local_rows(const Scenario& scenario,
                                                            const StepProgram& step,
                                                            const Timeline& timeline) {
  if (scenario.local_sgd.interval == 0) return {};
  const LocalStepMeans means = local_step_means(scenario, step, timeline);
  std::vector<std::pair<std::string, std::string>> rows;
  const auto add = [&](std::string_view what, const LocalStepMeans::Kind& kind) {
    if (kind.steps > 0)
      rows.emplace_back(fmt::format("  a step {} (ms)", what),
                        fmt::format("{}, {} simulated", grouped(kind.mean * 1e3, 3), kind.steps));
  };
  add("that reduces gradients", means.synchronous);
  add("of its own", means.local);
  add("that averages parameters", means.averaging);
  return rows;
}

}  // namespace rehearse
