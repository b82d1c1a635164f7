// The three stages differ in when they reduce and when they gather.
#include "strategies/methods/zero.hpp"

#include <algorithm>
#include <numeric>

#include "sim/scenario/framework.hpp"
#include "strategies/layers/optimizer.hpp"

namespace rehearse {

namespace {

/// What one rank of `ranks` holds of something shared; the largest part.
std::int64_t share(std::int64_t whole, std::size_t ranks) {
  const auto n = static_cast<std::int64_t>(ranks);
  return (whole + n - 1) / n;
}
Bytes share(Bytes whole, std::size_t ranks) { return Bytes{share(whole.count(), ranks)}; }

/// Of experts all replicas share one copy.
Family shards_of(Held held) {
  return held == Held::by_all ? Family::shards : Family::expert_replicas;
}

/// What one rank updates, and holds where ZeRO cuts.
std::int64_t share_of(const StepPlan& plan, std::uint32_t pipeline_rank) {
  std::int64_t parameters = 0;
  for (const Held held : {Held::by_all, Held::by_expert_ranks})
    parameters += share(parameters_of(plan, pipeline_rank, held), plan.size(shards_of(held)));
  return parameters;
}

bool is_forward(const LayerMoment& moment) { return moment.action == ActionKind::forward; }

Piece copy_of(Bytes parameters) {
  return {.name = "parameters.copy",
          .work = Compute{.traffic = Bytes{2 * parameters.count()}, .math = Precision::fp32}};
}

}  // namespace

void Zero::add_parts(const StepPlan& plan, const StageWork& work, Held held, CollectiveUses& uses,
                     std::vector<Part>& parts) const {
  const Parallelism& how = plan.scenario.parallelism;
  const StateFormat format = state_format(plan.scenario.training);
  const std::vector<Bytes> gradients = layer_bytes(plan, work, held, format.gradient);
  std::vector<Bucket> buckets;
  if (stage_ < 3) {
    buckets = fill_buckets(gradients, bucket_sizes(how));
  } else {
    for (std::uint32_t l = 0; l < gradients.size(); ++l) buckets.push_back({gradients[l], l});
  }
  const Family family = shards_of(held);
  const std::size_t shards = plan.size(family);
  const std::size_t copies = held == Held::by_all ? plan.size(Family::copies) : 1;
  // Buckets of stage 3 come in the order of layers, which lie in memory from the last to the first.
  Bytes begin = stage_ < 3 ? Bytes{} : std::accumulate(gradients.begin(), gradients.end(), Bytes{});
  for (const Bucket& bucket : buckets) {
    Part& part = parts.emplace_back(Part{bucket});
    if (stage_ == 3) begin -= bucket.bytes;
    part.begin = begin;
    if (stage_ < 3) begin += bucket.bytes;
    if (bucket.bytes == Bytes{0}) continue;
    const Bytes weights{bucket.bytes.count() / format.gradient.count() * format.parameter.count()};
    if (shards > 1) {
      part.scatter = uses.of({family, CollectiveKind::reduce_scatter, bucket.bytes});
      part.gather = uses.of({family, CollectiveKind::all_gather, weights});
    }
    if (copies > 1)
      part.average =
          uses.of({Family::copies, CollectiveKind::all_reduce, share(bucket.bytes, shards)});
  }
}

void Zero::plan(const StepPlan& plan, CollectiveUses& uses) {
  const Parallelism& how = plan.scenario.parallelism;
  stage_ = how.zero_stage;
  prefetch_ = how.prefetch_layers;
  overlaps_gradients_ = how.overlap_grad_reduce;
  overlaps_parameters_ = how.overlap_param_gather;
  shards_ = plan.size(Family::shards) > 1;
  // PyTorch's all_gather into a list of tensors, which a framework that waits for it calls, gathers
  // into one piece and copies (DeepSpeed of 2021: zero/partition_parameters.py).
  const std::size_t framework = plan.scenario.training.framework;
  copies_gathered_ = stage_ == 3 && framework > 0 && !frameworks()[framework].overlap_param_gather;
  // What check_scenario() refuses.
  ASSERT(plan.size(Family::expert) == 1 || (stage_ < 3 && plan.size(Family::copies) == 1));
  const Bytes weight = state_format(plan.scenario.training).parameter;
  for (const StageWork& work : plan.works) {
    std::vector<Part>& parts = parts_.emplace_back();
    add_parts(plan, work, Held::by_all, uses, parts);
    if (stage_ < 3) add_parts(plan, work, Held::by_expert_ranks, uses, parts);
    // Experts take turns with the rest, in the order of the backward pass.
    std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
      return stage_ < 3 && a.bucket.layer > b.bucket.layer;
    });
    whole_.push_back(layer_bytes(plan, work, Held::by_all, weight));
  }
  if (how.broadcast_parameters) plan_broadcasts(plan, weight, uses);
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    const std::size_t layers = plan.work(s).layers.size();
    gathered_.push_back({std::vector<Emitter::Ops>(layers), std::vector<bool>(layers)});
  }
}

void Zero::plan_broadcasts(const StepPlan& plan, Bytes weight, CollectiveUses& uses) {
  for (std::size_t kind = 0; kind < plan.works.size(); ++kind) {
    std::vector<std::uint32_t>& broadcasts = broadcasts_.emplace_back();
    for (const Held held : {Held::by_all, Held::by_expert_ranks}) {
      const auto add = [&](Bytes size) {
        broadcasts.push_back(uses.of({replicas_of(held), CollectiveKind::broadcast, size}));
      };
      const std::vector<Bytes> layers = layer_bytes(plan, plan.works[kind], held, weight);
      const Bytes all = std::accumulate(layers.begin(), layers.end(), Bytes{});
      if (plan.size(replicas_of(held)) == 1 || all == Bytes{0}) continue;
      if (stage_ < 3)
        add(all);
      else
        for (const Bytes layer : layers) add(layer);
    }
  }
}

void Zero::begin_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  const StateFormat format = state_format(plan.scenario.training);
  const std::int64_t all = parameters_of(plan, pipeline_rank);
  const std::int64_t part = share_of(plan, pipeline_rank);
  out.hold(pipeline_rank, MemoryKind::parameters, (stage_ < 3 ? all : part) * format.parameter);
  out.hold(pipeline_rank, MemoryKind::gradients, (stage_ < 2 ? all : part) * format.gradient);
  out.hold(pipeline_rank, MemoryKind::optimizer, part * format.state);
  last_.resize(std::max<std::size_t>(last_.size(), pipeline_rank + 1));
  broadcast_.resize(last_.size());
  if (!broadcasts_.empty()) broadcast(out, pipeline_rank);
  if (stage_ == 3 || !overlaps_parameters_) return;
  // What the last step has updated is gathered while this one's forward pass runs.
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    out.of_stage(s);
    std::vector<Part>& parts = parts_[plan.work_of[s]];
    for (std::size_t i = parts.size(); i-- > 0;) {
      if (parts[i].gather == no_use) continue;
      out.about(Purpose::gather, parts[i].begin);
      const Emitter::Ops ops = out.exchange_after(parts[i].gather, Lane::parameters,
                                                  Phase::parameters, broadcast_[pipeline_rank]);
      // From its layer on, until a later bucket tells otherwise: gathers end in this order.
      for (std::size_t l = parts[i].bucket.layer; l < gathered_[s].ops.size(); ++l)
        gathered_[s].ops[l] = ops, gathered_[s].is_there[l] = true;
    }
  }
}

// Where parameters are cut, each rank keeps its part of a layer as soon as it has come (DeepSpeed's
// zero.Init): it never has the whole model.
void Zero::broadcast(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    out.of_stage(s);
    const std::uint32_t kind = plan.work_of[s];
    for (std::size_t i = 0; i < broadcasts_[kind].size(); ++i) {
      out.about(Purpose::broadcast, stage_ < 3 ? Bytes{} : parts_[kind][i].begin);
      const Emitter::Ops ops = out.exchange_after(broadcasts_[kind][i], Lane::parameters,
                                                  Phase::parameters, broadcast_[pipeline_rank]);
      broadcast_[pipeline_rank] = ops;
      if (stage_ < 3) continue;
      out.memory(ops, false, MemoryKind::buffers, whole_[kind][i]);
      out.memory(ops, true, MemoryKind::buffers, Bytes{} - whole_[kind][i]);
    }
  }
  out.wait_for(broadcast_[pipeline_rank]);
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
  const Emitter::Ops begin =
      out.last().first == no_op ? broadcast_[out.pipeline_rank()] : out.last();
  const Emitter::Ops after = waits ? reduced : begin;
  for (std::size_t ahead = 0; ahead <= prefetch_; ++ahead) {
    if (is_forward(moment) ? moment.layer + ahead >= layers : moment.layer < ahead) break;
    const std::size_t layer = is_forward(moment) ? moment.layer + ahead : moment.layer - ahead;
    const std::uint32_t use = parts_[kind][layer].gather;
    if (gathered.is_there[layer] || use == no_use) continue;
    out.about(Purpose::gather, parts_[kind][layer].begin);
    gathered.ops[layer] = out.exchange_after(use, Lane::parameters, Phase::parameters, after);
    gathered.is_there[layer] = true;
    out.memory(gathered.ops[layer], false, MemoryKind::buffers, whole_[kind][layer]);
  }
  if (!gathered.is_there[moment.layer]) return;
  out.wait_for(gathered.ops[moment.layer]);
  if (copies_gathered_) out.kernel(copy_of(whole_[kind][moment.layer]), Phase::parameters);
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
  if (stage_ > 1) hold_gradients(out, moment);
  for (const Part& part : parts_[out.plan().work_of[out.stage()]])
    if (part.bucket.layer == moment.layer) reduce(out, part, moment.last_microbatch);
}

// What a rank holds at rest is its part. A layer's backward pass makes whole gradients, which go
// bucket by bucket as they are scattered.
void Zero::hold_gradients(Emitter& out, const LayerMoment& moment) const {
  const StepPlan& plan = out.plan();
  const LayerPieces& layer = plan.layers.kinds()[plan.work(out.stage()).layers[moment.layer]];
  for (const Held held : {Held::by_all, Held::by_expert_ranks})
    if (plan.size(shards_of(held)) > 1)
      out.memory(out.first_of_layers(), false, MemoryKind::gradients,
                 parameters_of(layer, held) * state_format(plan.scenario.training).gradient);
}

void Zero::reduce(Emitter& out, const Part& part, bool last_microbatch) {
  Emitter::Ops& last = last_[out.pipeline_rank()];
  out.about(Purpose::reduce, part.begin);
  if (part.scatter != no_use) {
    last = out.exchange(part.scatter, Lane::gradients, Phase::gradients);
    if (stage_ > 1) out.memory(last, true, MemoryKind::gradients, Bytes{} - part.bucket.bytes);
  }
  // Copies are averaged once, when the sums over the micro-batches are complete, beside the next
  // part's reduction among the shards (as FSDP2 does, on a stream of its own).
  out.about(Purpose::average_copies, part.begin);
  if (part.average != no_use && last_microbatch)
    last = out.exchange_after(part.average, Lane::copies, Phase::gradients,
                              part.scatter != no_use ? last : out.last());
  if (!overlaps_gradients_) out.wait_for(last);
}

// In the order of the backward pass.
template <class Visit>
void Zero::for_each_part(Emitter& out, std::uint32_t pipeline_rank, Visit visit) const {
  const StepPlan& plan = out.plan();
  for (std::uint32_t s = plan.schedule.stages; s-- > 0;) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    out.of_stage(s);
    for (const Part& part : parts_[plan.work_of[s]]) visit(part);
  }
}

void Zero::finish_gradients(Emitter& out, std::uint32_t pipeline_rank) {
  if (stage_ == 1 && !overlaps_gradients_)
    for_each_part(out, pipeline_rank, [&](const Part& part) { reduce(out, part, true); });
  out.wait_for(last_[pipeline_rank]);
}

std::int64_t Zero::updated_parameters(const StepPlan& plan, std::uint32_t pipeline_rank) const {
  return share_of(plan, pipeline_rank);
}

void Zero::end_step(Emitter& out, std::uint32_t pipeline_rank) {
  Time added;
  if (stage_ == 1)
    for_each_part(out, pipeline_rank, [&](const Part& part) {
      if (!overlaps_gradients_) added += out.plan().added_to(part.scatter);
      if (!overlaps_parameters_) added += out.plan().added_to(part.gather);
    });
  run_optimizer(out, updated_parameters(out.plan(), pipeline_rank), added);
  if (stage_ == 3 || overlaps_parameters_) return;
  for_each_part(out, pipeline_rank, [&](const Part& part) {
    out.about(Purpose::gather, part.begin);
    if (part.gather != no_use) out.exchange(part.gather, Lane::parameters, Phase::parameters);
  });
}

}  // namespace rehearse
