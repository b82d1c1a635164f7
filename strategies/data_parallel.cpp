// Buckets become all-reduces as soon as the backward pass of the last micro-batch has filled them.
#include "strategies/data_parallel.hpp"

#include "strategies/loss_scaling.hpp"
#include "strategies/optimizer.hpp"

namespace rehearse {

std::vector<Bytes> layer_bytes(const StepPlan& plan, const StageWork& work, Bytes each) {
  std::vector<Bytes> bytes;
  for (const std::uint32_t kind : work.layers)
    bytes.push_back(plan.pieces.kinds()[kind].parameters * each);
  return bytes;
}

std::int64_t parameters_of(const StepPlan& plan, std::uint32_t pipeline_rank) {
  std::int64_t parameters = 0;
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
    if (plan.schedule.rank_of[s] == pipeline_rank) parameters += plan.work(s).parameters;
  return parameters;
}

bool completes_gradients(ActionKind action) {
  return action == ActionKind::backward || action == ActionKind::backward_weight;
}

void run_optimizer(Emitter& out, std::int64_t parameters) {
  check_overflow(out, parameters);
  if (out.plan().update == Update::skipped) return;
  for (const Piece& piece : optimizer_pieces(out.plan().scenario.training, parameters))
    out.kernel(piece, Phase::optimizer);
}

void DataParallel::plan(StepPlan& plan) {
  const Parallelism& how = plan.scenario.parallelism;
  const StateFormat format = state_format(plan.scenario.training);
  const bool alone = plan.size(Family::replicas) == 1;
  overlaps_ = how.overlap_grad_reduce;
  for (const StageWork& work : plan.works) {
    std::vector<Reduction>& reductions = reductions_.emplace_back();
    if (alone) continue;
    for (const Bucket& bucket :
         fill_buckets(layer_bytes(plan, work, format.gradient), bucket_sizes(how)))
      reductions.push_back(
          {bucket, plan.use({Family::replicas, CollectiveKind::all_reduce, bucket.bytes})});
    if (how.broadcast_parameters)
      broadcasts_.push_back(plan.use(
          {Family::replicas, CollectiveKind::broadcast, work.parameters * format.parameter}));
  }
}

void DataParallel::begin_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  const StateFormat format = state_format(plan.scenario.training);
  const std::int64_t parameters = parameters_of(plan, pipeline_rank);
  out.hold(pipeline_rank, MemoryKind::parameters, parameters * format.parameter);
  out.hold(pipeline_rank, MemoryKind::gradients, parameters * format.gradient);
  out.hold(pipeline_rank, MemoryKind::optimizer, parameters * format.state);
  last_.resize(std::max<std::size_t>(last_.size(), pipeline_rank + 1));
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
    if (!broadcasts_.empty() && plan.schedule.rank_of[s] == pipeline_rank)
      out.wait_for(out.exchange(broadcasts_[plan.work_of[s]], Lane::parameters, Phase::parameters));
}

bool DataParallel::acts_between_layers(const LayerMoment& moment) const {
  return overlaps_ && moment.last_microbatch && completes_gradients(moment.action);
}

void DataParallel::after_layer(Emitter& out, const LayerMoment& moment) {
  if (!acts_between_layers(moment)) return;
  for (const Reduction& reduction : reductions_[out.plan().work_of[out.stage()]])
    if (reduction.bucket.layer == moment.layer) reduce(out, reduction);
}

void DataParallel::reduce(Emitter& out, const Reduction& reduction) {
  last_[out.pipeline_rank()] = out.exchange(reduction.use, Lane::gradients, Phase::gradients);
}

void DataParallel::end_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  for (std::uint32_t s = plan.schedule.stages; s-- > 0 && !overlaps_;)
    if (plan.schedule.rank_of[s] == pipeline_rank)
      for (const Reduction& reduction : reductions_[plan.work_of[s]]) reduce(out, reduction);
  out.wait_for(last_[pipeline_rank]);
  run_optimizer(out, parameters_of(plan, pipeline_rank));
}

}  // namespace rehearse
