// A schedule as a picture for terminals.
#pragma once

#include <cstddef>
#include <string>

#include "strategies/schedules/step_times.hpp"

namespace rehearse {

/// A line for each rank, wide as time: labelled boxes where they fit in `columns`, else a letter
/// for each step with dots where it idles, cut at the edge. Below them how long it takes and how
/// much of that is bubble. The schedule must be able to run.
std::string draw_schedule(const Schedule&, const StageTimes& = {}, std::size_t columns = 100);

}  // namespace rehearse
