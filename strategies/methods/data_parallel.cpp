// Buckets become all-reduces as soon as the backward pass of the last micro-batch has filled them.
#include "strategies/methods/data_parallel.hpp"

#include <numeric>
#include <utility>

#include "strategies/layers/optimizer.hpp"
#include "strategies/lowering/step_pricing.hpp"

namespace rehearse {

std::int64_t parameters_of(const LayerPieces& layer, Held held) {
  return held == Held::by_all ? layer.parameters - layer.expert_parameters
                              : layer.expert_parameters;
}

Family replicas_of(Held held) {
  return held == Held::by_all ? Family::replicas : Family::expert_replicas;
}

std::vector<Bytes> layer_bytes(const StepPlan& plan, const StageWork& work, Held held, Bytes each) {
  std::vector<Bytes> bytes;
  for (const std::uint32_t kind : work.layers)
    bytes.push_back(parameters_of(plan.layers.kinds()[kind], held) * each);
  return bytes;
}

std::int64_t parameters_of(const StepPlan& plan, std::uint32_t pipeline_rank, Held held) {
  std::int64_t parameters = 0;
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
    if (plan.schedule.rank_of[s] == pipeline_rank)
      for (const std::uint32_t kind : plan.work(s).layers)
        parameters += parameters_of(plan.layers.kinds()[kind], held);
  return parameters;
}

std::int64_t parameters_of(const StepPlan& plan, std::uint32_t pipeline_rank) {
  return parameters_of(plan, pipeline_rank, Held::by_all) +
         parameters_of(plan, pipeline_rank, Held::by_expert_ranks);
}

bool completes_gradients(ActionKind action) {
  return action == ActionKind::backward || action == ActionKind::backward_weight;
}

void run_optimizer(Emitter& out, std::int64_t parameters, Time before) {
  out.about(Purpose::optimizer);
  if (out.plan().update == Update::skipped) return;
  for (Piece& piece : optimizer_pieces(out.plan().scenario.training, parameters)) {
    std::get<Compute>(piece.work).fixed += std::exchange(before, Time{});
    out.kernel(piece, Phase::optimizer);
  }
}

void DataParallel::plan(const StepPlan& plan, CollectiveUses& uses) {
  const Parallelism& how = plan.scenario.parallelism;
  const StateFormat format = state_format(plan.scenario.training);
  overlaps_ = how.overlap_grad_reduce;
  for (const StageWork& work : plan.works) {
    std::vector<Reduction>& reductions = reductions_.emplace_back();
    std::vector<std::uint32_t>& broadcasts = broadcasts_.emplace_back();
    for (const Held held : {Held::by_all, Held::by_expert_ranks}) {
      const Family replicas = replicas_of(held);
      if (plan.size(replicas) == 1) continue;
      const std::vector<Bytes> gradients = layer_bytes(plan, work, held, format.gradient);
      Bytes begin;
      for (const Bucket& bucket : fill_buckets(gradients, bucket_sizes(how))) {
        reductions.push_back(
            {bucket, uses.of({replicas, CollectiveKind::all_reduce, bucket.bytes}), begin});
        begin += bucket.bytes;
      }
      const std::vector<Bytes> layers = layer_bytes(plan, work, held, format.parameter);
      const Bytes parameters = std::accumulate(layers.begin(), layers.end(), Bytes{});
      if (how.broadcast_parameters && parameters > Bytes{0})
        broadcasts.push_back(uses.of({replicas, CollectiveKind::broadcast, parameters}));
    }
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
  out.about(Purpose::broadcast);
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    out.of_stage(s);
    for (const std::uint32_t use : broadcasts_[plan.work_of[s]])
      out.wait_for(out.exchange(use, Lane::parameters, Phase::parameters));
  }
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
  out.about(Purpose::reduce, reduction.begin);
  last_[out.pipeline_rank()] = out.exchange(reduction.use, Lane::gradients, Phase::gradients);
}

void DataParallel::finish_gradients(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  for (std::uint32_t s = plan.schedule.stages; s-- > 0 && !overlaps_;) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    out.of_stage(s);
    for (const Reduction& reduction : reductions_[plan.work_of[s]]) reduce(out, reduction);
  }
  out.wait_for(last_[pipeline_rank]);
}

std::int64_t DataParallel::updated_parameters(const StepPlan& plan,
                                              std::uint32_t pipeline_rank) const {
  return parameters_of(plan, pipeline_rank);
}

void DataParallel::end_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  Time added = launches_of_update(plan, pipeline_rank);
  for (std::uint32_t s = 0; s < plan.schedule.stages && !overlaps_; ++s)
    if (plan.schedule.rank_of[s] == pipeline_rank)
      for (const Reduction& reduction : reductions_[plan.work_of[s]])
        added += plan.added_to(reduction.use);
  run_optimizer(out, parameters_of(plan, pipeline_rank), added);
}

}  // namespace rehearse
