// Is it a schedule? Every stage sees every micro-batch forward and back exactly once, in an order
// that can happen, on the rank that holds the stage, and no ranks wait for each other for ever.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/schedules/schedule.hpp"

namespace rehearse {

struct ScheduleProblem {
  std::size_t rank = 0, cell = 0;  // where in the rows
  std::string message;
};

/// All that is wrong, in the order of the rows; nothing when the schedule can run.
std::vector<ScheduleProblem> schedule_problems(const Schedule&);
/// Throws InputError with all of them.
void check_schedule(const Schedule&);

}  // namespace rehearse
