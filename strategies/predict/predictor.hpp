// From a scenario to a prediction: plan, network, lowering, engine, accounts. Remembers between
// calls what does not depend on the model: groups, casts, collectives.
//
// `quick` simulates a step in blocks and stops repeating micro-batches once they repeat exactly;
// its step time and accounts are those of `predict`, which simulates every kernel of every
// micro-batch.
#pragma once

#include <map>
#include <memory>

#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/remembered_cost.hpp"
#include "sim/workload/workload.hpp"
#include "strategies/fold/step_network.hpp"
#include "strategies/methods/every_transfer.hpp"
#include "strategies/predict/account.hpp"
#include "strategies/predict/prediction.hpp"
#include "strategies/predict/steady.hpp"

namespace rehearse {

/// What becomes of collectives that meet on links: small steps are simulated transfer by transfer
/// (every_transfer.hpp), or always as flows, like those of large steps.
enum class Crowds : std::uint8_t { by_transfers, by_flows };

class StepPredictor {
 public:
  /// Both must outlive it.
  StepPredictor(const Topology& topology, const CostModel& cost,
                Crowds crowds = Crowds::by_transfers);

  struct Detail {
    Grain grain = Grain::kernels;  // also in place of blocks where every transfer is shown
    bool fold = true;
    std::size_t microbatches = 0;  // in place of the scenario's; 0: those
    bool count_links = false;      // what every link carries: StepProgram::link_bytes
  };
  struct Answer {
    Prediction prediction;
    StepProgram step;
    Timeline timeline;
  };
  /// Throws InputError for what does not come out even.
  Answer predict(const Scenario& scenario, const Workload& workload, const Detail& detail);
  Prediction quick(const Scenario& scenario, const Workload& workload,
                   Update update = Update::done);
  /// The ops of the representative ranks after one of the passes of lowering.
  StepProgram lowered_to(Pass last, const Scenario& scenario, const Workload& workload);
  /// Every rank's own ops, with whole collectives: for expand_collectives() and real executors.
  StepProgram whole_program(const Scenario& scenario, const Workload& workload);
  /// The same with every transfer, by the algorithms of the prediction: for the reference engine.
  /// Nothing when these are more than `most_ops`.
  std::optional<WholeStep> every_transfer(const Scenario& scenario, const Workload& workload,
                                          std::size_t most_ops);

 private:
  StepNetwork& network(const Placement& placement, const CollectiveChoice& choice);
  StepPlan plan(const Scenario& scenario, const Workload& workload, std::size_t microbatches);
  struct Run {
    StepProgram step;
    Timeline timeline;
  };
  StepProgram lowered(const StepPlan& plan, const LowerOptions& options);
  Run simulate(const StepPlan& plan, const LowerOptions& options);
  bool shows_transfers(const StepPlan& plan);
  Run simulate_transfers(const StepPlan& plan, const LowerOptions& options);
  Prediction tell(const Run& run, const Accounts& accounts, const StepPlan& plan) const;
  Prediction extrapolate(const Run& run, const SteadyState& steady, const StepPlan& plan,
                         std::size_t microbatches) const;

  const Topology& topology_;
  Crowds crowds_;
  RememberedCost cost_;
  Routing routing_;
  FastSimulator engine_;
  FamilyPool families_;
  std::vector<std::unique_ptr<StepNetwork>> networks_;
  std::vector<std::pair<Placement, CollectiveChoice>> network_keys_;
  /// Micro-batches after which steps of this schedule, pipeline and sequence parallelism repeated.
  std::map<std::tuple<std::string, std::size_t, bool>, std::size_t> settled_at_;
};

}  // namespace rehearse
