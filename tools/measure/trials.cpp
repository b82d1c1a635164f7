// A trial's first run touches its memory and wakes the caches.
#include "tools/measure/trials.hpp"

#include "tools/measure/line_fit.hpp"

namespace rehearse {

Trial::Trial(const HostRanks& ranks, Program program, std::function<bool()> stop)
    : program_{std::move(program)},
      memory_{ranks.memory(program_)},
      executor_{ranks.executor(program_, memory_, {.stop = std::move(stop)})} {
  executor_->run(program_);
}

double median_makespan(const Trial& trial) {
  std::vector<double> times;
  for (const Timeline& run : trial.runs()) times.push_back(run.makespan.seconds().count());
  return median(std::move(times));
}

}  // namespace rehearse
