// Engines by name.
#include "tools/cli/engine.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/module.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/simgrid/simgrid_module.hpp"

namespace rehearse {

std::unique_ptr<Executor> make_engine(std::string_view name, Routing& routing,
                                      const CostModel& cost) {
  if (name == "fast") return std::make_unique<FastSimulator>(routing, cost);
  if (name == "simgrid") {
    const auto make = module_function<decltype(rehearse_simgrid)>({"simgrid", "libsimgrid-dev"});
    if (make == nullptr)
      throw NothingToRunOn(
          "this build has no SimGrid; install libsimgrid-dev and build again, or "
          "choose --engine fast");
    return std::unique_ptr<Executor>(make(routing, cost));
  }
  const std::vector<std::string> known{"fast", "simgrid"};
  const std::string hint = did_you_mean(name, known);
  throw InputError(fmt::format("unknown engine '{}'{}", name,
                               hint.empty() ? "; there are fast and simgrid" : hint));
}

}  // namespace rehearse
