// How many bytes a step puts on each link of the machine. A folded program crosses only possible
// bottlenecks, and one of those that are alike; here every group and every message counts on all of
// its own.
#pragma once

#include <vector>

#include "strategies/fold/step_network.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

/// By LinkId, with what protocols add. Of a step whose kernels were not merged with exchanges.
std::vector<Bytes> link_bytes(const StepProgram& step, const StepPlan& plan, StepNetwork& network);

}  // namespace rehearse
