// Local SGD: every replica takes steps of its own and the replicas average their parameters now and
// then (Stich 2019; post-local: Lin et al. 2020; adaptive: Wang and Joshi 2019, "AdaComm").
//
//   compute  │ F B opt │ F B opt │ F B opt │              │ F B opt │ …        interval 3
//   comm                                    [average ─ ─ ─]
//
// fixed       every H steps: communication is 1/H of that of a step that reduces
// post_local  the first N steps reduce their gradients, then as fixed
// adaptive    H(t) = ceil( sqrt(loss(t) / loss(0)) · H0 ) at the beginning of each interval, with
//             loss(t) / loss(0) modelled as 1 / (1 + t / T), T = loss_half_steps
//
// All steps of a run are one Program, one after another; what is reported is their mean.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/methods/data_parallel.hpp"

namespace rehearse {

enum class LocalStep : std::uint8_t { synchronous, local, averaging };

/// What each simulated step does; one synchronous one without [local_sgd].
std::vector<LocalStep> local_schedule(const LocalSgd& how);
std::size_t simulated_steps(const Scenario& scenario);

/// What makes no sense, alone or with other keys.
std::vector<KeyProblem> local_problems(const Scenario& scenario, std::size_t world);

class LocalSgdStrategy final : public Strategy {
 public:
  void plan(const StepPlan& plan, CollectiveUses& uses) override;
  void begin_step(Emitter& out, std::uint32_t pipeline_rank) override;
  bool acts_between_layers(const LayerMoment& moment) const override;
  void before_layer(Emitter&, const LayerMoment&) override {}
  void after_layer(Emitter& out, const LayerMoment& moment) override;
  void finish_gradients(Emitter& out, std::uint32_t pipeline_rank) override;
  std::int64_t updated_parameters(const StepPlan& plan, std::uint32_t pipeline_rank) const override;
  void end_step(Emitter& out, std::uint32_t pipeline_rank) override;

 private:
  std::vector<LocalStep> steps_;
  std::vector<std::size_t> begun_;                    // steps, by pipeline rank
  std::size_t step_ = 0;                              // the one under way
  DataParallel synchronous_;                          // of post_local
  std::vector<std::vector<std::uint32_t>> averages_;  // by kind of stage: uses
};

}  // namespace rehearse
