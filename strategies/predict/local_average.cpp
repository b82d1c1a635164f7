// Sums over all simulated steps become means, and the parts still make the whole.
#include "strategies/predict/local_average.hpp"

namespace rehearse {

void average_steps(Prediction& prediction, std::size_t steps) {
  const auto count = static_cast<std::int64_t>(steps);
  const auto mean = [&](Time& time) { time = Time::picoseconds(time.ps() / count); };
  mean(prediction.step);
  for (RoleReport& role : prediction.roles) {
    Time rest = prediction.step;
    const bool idles = role.time.bubble > Time{};
    mean(role.time.compute);
    rest = rest - role.time.compute;
    for (Time& time : role.time.exposed) mean(time), rest = rest - time;
    for (Time& time : role.communication) mean(time);
    // What rounding leaves goes where it is not seen, so that the parts still make the whole.
    if (idles)
      role.time.bubble = rest;
    else
      role.time.compute += rest;
  }
}

std::vector<Time> local_step_times(const StepProgram& step, const Timeline& timeline) {
  std::vector<Time> begins;
  bool is_over = true;
  for (std::size_t i = 0; i < step.tags.size(); ++i) {
    const Program::Op& op = step.program.ops()[i];
    if (step.tags[i].communicates || op.rank != step.roles.front().rank) continue;
    if (is_over && step.tags[i].phase == Phase::forward) begins.push_back(timeline.spans[i].begin);
    is_over = step.tags[i].phase == Phase::optimizer;
  }
  std::vector<Time> times;
  for (std::size_t k = 0; k < begins.size(); ++k)
    times.push_back((k + 1 < begins.size() ? begins[k + 1] : timeline.makespan) - begins[k]);
  return times;
}

}  // namespace rehearse
