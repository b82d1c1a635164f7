// `--engine`: the one table of engines by name.
#pragma once

#include <memory>
#include <string_view>

#include "sim/engine/executor.hpp"
#include "topology/routing.hpp"

namespace rehearse {

/// "fast" or "simgrid". Throws NothingToRunOn where this build has no SimGrid, InputError for any
/// other word. The routing and the cost model must outlive the engine.
std::unique_ptr<Executor> make_engine(std::string_view name, Routing& routing,
                                      const CostModel& cost);

}  // namespace rehearse
