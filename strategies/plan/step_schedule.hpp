// The schedule that a scenario asks for: one of the table, or a file.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "strategies/schedules/schedule.hpp"

namespace rehearse {

/// Throws InputError for a name, a shape or a file that does not do.
Schedule schedule_for(const Parallelism& how, std::size_t microbatches);
/// Whether the schedule of this name can have so many micro-batches.
bool schedule_takes(const Parallelism& how, std::size_t microbatches);

}  // namespace rehearse
