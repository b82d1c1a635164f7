// The transfers are those of the prediction's own algorithms, so that engines are compared, not
// choices.
#include "tools/predict/reference_step.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "strategies/methods/local_sgd.hpp"
#include "tools/cli/engine.hpp"

namespace rehearse {

ReferenceStep run_reference(std::string_view engine, const LoadedScenario& loaded,
                            StepPredictor& predictor, const CostModel& cost) {
  Routing routing{loaded.topology};
  const auto executor = make_engine(engine, routing, cost);
  constexpr std::size_t most = 2'000'000;
  const auto whole = predictor.every_transfer(loaded.scenario, loaded.workload, most);
  if (!whole)
    throw InputError(
        fmt::format("--engine {} runs every op of every rank, more than {} here, and no more are "
                    "worth waiting for: take fewer ranks, layers or micro-batches",
                    engine, most));
  const Program& program = whole->expanded.program;
  const auto steps = static_cast<std::int64_t>(simulated_steps(loaded.scenario));
  return {Time::picoseconds(executor->run(program).makespan.ps() / steps), program.size()};
}

}  // namespace rehearse
