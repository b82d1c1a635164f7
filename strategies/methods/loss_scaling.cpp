// A kernel over all gradients, and a few bytes over the ranks that share them out.
#include "strategies/methods/loss_scaling.hpp"

#include "strategies/layers/loss_scaling_pieces.hpp"

namespace rehearse {

void plan_overflow_check(StepPlan& plan) {
  if (plan.scenario.training.loss_scaling != LossScaling::dynamic) return;
  const auto join = [&](Family family) {
    if (plan.size(family) > 1)
      plan.overflow_uses.push_back(plan.uses.of({family, CollectiveKind::all_reduce, Bytes{4}}));
  };
  join(Family::tensor);
  const bool cuts = plan.scenario.parallelism.zero_stage > 0;
  join(cuts ? Family::shards : Family::expert);
  if (plan.size(Family::stages) > 1)
    plan.overflow_of_stages = plan.uses.of({Family::stages, CollectiveKind::all_reduce, Bytes{4}});
}

void check_overflow(Emitter& out, const Strategy& strategy) {
  const StepPlan& plan = out.plan();
  if (plan.scenario.training.loss_scaling != LossScaling::dynamic) return;
  const auto places = static_cast<std::uint32_t>(plan.schedule.ranks.size());
  for (std::uint32_t r = 0; r < places; ++r) {
    out.at_rest(r);
    out.about(Purpose::overflow);
    const std::int64_t parameters = strategy.updated_parameters(plan, r);
    if (parameters > 0)
      out.kernel(unscale_piece(plan.scenario.training, parameters), Phase::optimizer);
    Emitter::Ops told = out.last();
    for (const std::uint32_t use : plan.overflow_uses) {
      // Each of them goes on what the one before it has told.
      out.wait_for(told = out.exchange_after(use, out.lane_of(use), Phase::optimizer, told));
    }
  }
  if (!plan.overflow_of_stages) return;
  out.about(Purpose::overflow);
  const Emitter::Ops told = out.exchange_of_all(*plan.overflow_of_stages, Phase::optimizer);
  for (std::uint32_t r = 0; r < places; ++r) {
    out.at_rest(r);
    out.wait_for(told);
  }
}

}  // namespace rehearse
