// What `rehearse predict` tells of a run of several steps (local SGD).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strategies/methods/local_sgd.hpp"

namespace rehearse {

/// How long the simulated steps of each kind took, in the mean.
struct LocalStepMeans {
  struct Kind {
    std::size_t steps = 0;
    double mean = 0;  // seconds
  };
  Kind synchronous, local, averaging;
};
LocalStepMeans local_step_means(const Scenario& scenario, const StepProgram& step,
                                const Timeline& timeline);

/// Rows for the table of figures; none where every step is synchronous.
std::vector<std::pair<std::string, std::string>> local_rows(const Scenario& scenario,
                                                            const StepProgram& step,
                                                            const Timeline& timeline);

}  // namespace rehearse
