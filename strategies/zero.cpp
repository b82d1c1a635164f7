// The three stages differ in when they reduce and when they gather.
#include "strategies/zero.hpp"

#include <algorithm>

#include "strategies/data_parallel.hpp"
#include "strategies/optimizer.hpp"

namespace rehearse {

namespace {

/// What one rank of `ranks` holds of something shared; the largest part.
std::int64_t share(std::int64_t whole, std::size_t ranks) {
  const auto n = static_cast<std::int64_t>(ranks);
  return (whole + n - 1) / n;
}
Bytes share(Bytes whole, std::size_t ranks) { return Bytes{share(whole.count(), ranks)}; }

bool is_forward(const LayerMoment& moment) { return moment.action == ActionKind::forward; }

}  // namespace

std::vector<Zero::Part> Zero::parts_of(StepPlan& plan, const StageWork& work) const {
  const Parallelism& how = plan.scenario.parallelism;
  const StateFormat format = state_format(plan.scenario.training);
  const std::vector<Bytes> gradients = layer_bytes(plan, work, format.gradient);
  std::vector<Bucket> buckets;
  if (stage_ < 3) {
    buckets = fill_buckets(gradients, bucket_sizes(how));
  } else {
    for (std::uint32_t l = 0; l < gradients.size(); ++l) buckets.push_back({gradients[l], l});
  }
  const std::size_t shards = plan.size(Family::shards), copies = plan.size(Family::copies);
  std::vector<Part> parts;
  for (const Bucket& bucket : buckets) {
    Part& part = parts.emplace_back(Part{bucket});
    if (bucket.bytes == Bytes{0}) continue;
    const Bytes weights{bucket.bytes.count() / format.gradient.count() * format.parameter.count()};
    if (shards > 1) {
      part.scatter = plan.use({Family::shards, CollectiveKind::reduce_scatter, bucket.bytes});
      part.gather = plan.use({Family::shards, CollectiveKind::all_gather, weights});
    }
    if (copies > 1)
      part.average =
          plan.use({Family::copies, CollectiveKind::all_reduce, share(bucket.bytes, shards)});
  }
  return parts;
}

void Zero::plan(StepPlan& plan) {
  const Parallelism& how = plan.scenario.parallelism;
  stage_ = how.zero_stage;
  prefetch_ = how.prefetch_layers;
  overlaps_gradients_ = how.overlap_grad_reduce;
  overlaps_parameters_ = how.overlap_param_gather;
  shards_ = plan.size(Family::shards) > 1;
  const Bytes weight = state_format(plan.scenario.training).parameter;
  for (const StageWork& work : plan.works) {
    parts_.push_back(parts_of(plan, work));
    whole_.push_back(layer_bytes(plan, work, weight));
  }
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    const std::size_t layers = plan.work(s).layers.size();
    gathered_.push_back({std::vector<Emitter::Ops>(layers), std::vector<bool>(layers)});
  }
}

void Zero::begin_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  const StateFormat format = state_format(plan.scenario.training);
  const std::int64_t all = parameters_of(plan, pipeline_rank);
  const std::int64_t part = share(all, plan.size(Family::shards));
  out.hold(pipeline_rank, MemoryKind::parameters, (stage_ < 3 ? all : part) * format.parameter);
  out.hold(pipeline_rank, MemoryKind::gradients, (stage_ < 2 ? all : part) * format.gradient);
  out.hold(pipeline_rank, MemoryKind::optimizer, part * format.state);
  last_.resize(std::max<std::size_t>(last_.size(), pipeline_rank + 1));
  if (stage_ == 3 || !overlaps_parameters_) return;
  // What the last step has updated is gathered while this one's forward pass runs.
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    std::vector<Part>& parts = parts_[plan.work_of[s]];
    for (std::size_t i = parts.size(); i-- > 0;) {
      if (parts[i].gather == no_use) continue;
      const Emitter::Ops ops =
          out.exchange_after(parts[i].gather, Lane::parameters, Phase::parameters, {});
      // From its layer on, until a later bucket tells otherwise: gathers end in this order.
      for (std::size_t l = parts[i].bucket.layer; l < gathered_[s].ops.size(); ++l)
        gathered_[s].ops[l] = ops, gathered_[s].is_there[l] = true;
    }
  }
}

bool Zero::reduces_after(const LayerMoment& moment) const {
  if (!completes_gradients(moment.action)) return false;
  return stage_ > 1 || (overlaps_gradients_ && moment.last_microbatch);
}

bool Zero::acts_between_layers(const LayerMoment& moment) const {
  if (stage_ == 3) return true;
  if (is_forward(moment)) return overlaps_parameters_ && moment.first_microbatch;
  return reduces_after(moment);
}

void Zero::before_layer(Emitter& out, const LayerMoment& moment) {
  if (stage_ == 3) return gather_ahead(out, moment);
  if (!overlaps_parameters_ || !is_forward(moment) || !moment.first_microbatch) return;
  Gathered& gathered = gathered_[out.stage()];
  if (gathered.is_there[moment.layer]) out.wait_for(gathered.ops[moment.layer]);
  gathered.is_there[moment.layer] = false;
}

void Zero::gather_ahead(Emitter& out, const LayerMoment& moment) {
  if (moment.action == ActionKind::backward_weight || !shards_) return;
  const std::uint32_t kind = out.plan().work_of[out.stage()];
  Gathered& gathered = gathered_[out.stage()];
  const std::size_t layers = gathered.ops.size();
  // Gradients that are waited for come first: nothing goes beside them.
  const Emitter::Ops& reduced = last_[out.pipeline_rank()];
  const bool waits = !overlaps_gradients_ && reduced.first != no_op &&
                     (out.last().first == no_op || reduced.first > out.last().first);
  const Emitter::Ops after = waits ? reduced : out.last();
  for (std::size_t ahead = 0; ahead <= prefetch_; ++ahead) {
    if (is_forward(moment) ? moment.layer + ahead >= layers : moment.layer < ahead) break;
    const std::size_t layer = is_forward(moment) ? moment.layer + ahead : moment.layer - ahead;
    const std::uint32_t use = parts_[kind][layer].gather;
    if (gathered.is_there[layer] || use == no_use) continue;
    gathered.ops[layer] = out.exchange_after(use, Lane::parameters, Phase::parameters, after);
    gathered.is_there[layer] = true;
    out.memory(gathered.ops[layer], false, MemoryKind::buffers, whole_[kind][layer]);
  }
  if (gathered.is_there[moment.layer]) out.wait_for(gathered.ops[moment.layer]);
}

void Zero::release(Emitter& out, const LayerMoment& moment) {
  Gathered& gathered = gathered_[out.stage()];
  if (moment.action == ActionKind::backward_weight || !gathered.is_there[moment.layer]) return;
  // The backward pass begins with the layer that the forward pass ends with.
  if (is_forward(moment) && moment.layer + 1 == gathered.ops.size()) return;
  gathered.is_there[moment.layer] = false;
  const std::uint32_t kind = out.plan().work_of[out.stage()];
  out.memory(out.last(), true, MemoryKind::buffers, Bytes{} - whole_[kind][moment.layer]);
}

void Zero::after_layer(Emitter& out, const LayerMoment& moment) {
  if (stage_ == 3) release(out, moment);
  if (!reduces_after(moment)) return;
  for (const Part& part : parts_[out.plan().work_of[out.stage()]])
    if (part.bucket.layer == moment.layer) reduce(out, part, moment.last_microbatch);
}

void Zero::reduce(Emitter& out, const Part& part, bool last_microbatch) {
  Emitter::Ops& last = last_[out.pipeline_rank()];
  if (part.scatter != no_use) last = out.exchange(part.scatter, Lane::gradients, Phase::gradients);
  // Copies are averaged once, when the sums over the micro-batches are complete, beside the next
  // part's reduction among the shards (as FSDP2 does, on a stream of its own).
  if (part.average != no_use && last_microbatch)
    last = out.exchange_after(part.average, Lane::copies, Phase::gradients,
                              part.scatter != no_use ? last : out.last());
  if (!overlaps_gradients_) out.wait_for(last);
}

void Zero::end_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  const auto for_each_part = [&](auto&& visit) {
    for (std::uint32_t s = plan.schedule.stages; s-- > 0;)
      if (plan.schedule.rank_of[s] == pipeline_rank)
        for (const Part& part : parts_[plan.work_of[s]]) visit(part);
  };
  if (stage_ == 1 && !overlaps_gradients_)
    for_each_part([&](const Part& part) { reduce(out, part, true); });
  out.wait_for(last_[pipeline_rank]);
  run_optimizer(out, share(parameters_of(plan, pipeline_rank), plan.size(Family::shards)));
  if (stage_ == 3 || overlaps_parameters_) return;
  for_each_part([&](const Part& part) {
    if (part.gather != no_use) out.exchange(part.gather, Lane::parameters, Phase::parameters);
  });
}

}  // namespace rehearse
