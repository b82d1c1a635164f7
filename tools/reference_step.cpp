// Expansion with the algorithm that each collective would choose by itself.
#include "tools/reference_step.hpp"

#include <fmt/format.h>

#include "sim/error.hpp"
#include "strategies/expand.hpp"
#include "strategies/local_sgd.hpp"
#include "tools/engine.hpp"

namespace rehearse {

ReferenceStep run_reference(std::string_view engine, const LoadedScenario& loaded,
                            StepPredictor& predictor, const CostModel& cost) {
  Routing routing{loaded.topology};
  const auto executor = make_engine(engine, routing, cost);
  const StepProgram whole = predictor.whole_program(loaded.scenario, loaded.workload);
  constexpr std::size_t most = 2'000'000;
  const auto refuse = [&](std::size_t ops) {
    throw InputError(
        fmt::format("--engine {} runs every op of every rank, {} of them here; at most {} are "
                    "worth waiting for: take fewer ranks, layers or micro-batches",
                    engine, ops, most));
  };
  if (whole.program.size() > most) refuse(whole.program.size());
  const Program program = expand_collectives(whole.program, routing,
                                             {.algorithm = loaded.scenario.collectives.all_reduce});
  if (program.size() > most) refuse(program.size());
  const auto steps = static_cast<std::int64_t>(simulated_steps(loaded.scenario));
  return {Time::picoseconds(executor->run(program).makespan.ps() / steps), program.size()};
}

}  // namespace rehearse
