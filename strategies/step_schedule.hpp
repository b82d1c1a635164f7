// The schedule that a scenario asks for: one of the table, or a file.
#pragma once

#include "sim/scenario.hpp"
#include "strategies/schedules/schedule.hpp"

namespace rehearse {

/// Throws InputError for a name, a shape or a file that does not do.
Schedule schedule_for(const Parallelism& how, std::size_t microbatches);

}  // namespace rehearse
