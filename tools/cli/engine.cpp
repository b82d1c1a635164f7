// Engines by name.
#include "tools/cli/engine.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/engine/fast_simulator.hpp"
#ifdef REHEARSE_HAS_SIMGRID
#include "sim/simgrid/simgrid_simulator.hpp"
#endif

namespace rehearse {

std::unique_ptr<Executor> make_engine(std::string_view name, Routing& routing,
                                      const CostModel& cost) {
  if (name == "fast") return std::make_unique<FastSimulator>(routing, cost);
  if (name == "simgrid") {
#ifdef REHEARSE_HAS_SIMGRID
    return std::make_unique<SimGridSimulator>(routing, cost);
#else
    throw NothingToRunOn(
        "this build has no SimGrid; install libsimgrid-dev and build again, or "
        "choose --engine fast");
#endif
  }
  const std::vector<std::string> known{"fast", "simgrid"};
  const std::string hint = did_you_mean(name, known);
  throw InputError(fmt::format("unknown engine '{}'{}", name,
                               hint.empty() ? "; there are fast and simgrid" : hint));
}

}  // namespace rehearse
