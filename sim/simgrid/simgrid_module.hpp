// What the module with SimGrid exports.
#pragma once

#include "sim/engine/executor.hpp"
#include "topology/routing.hpp"

/// A new SimGridSimulator, which is the caller's to delete.
extern "C" rehearse::Executor* rehearse_simgrid(rehearse::Routing& routing,
                                                const rehearse::CostModel& cost);
