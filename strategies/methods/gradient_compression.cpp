// The kernels, all of them bound by memory, and where they stand in the step.
#include "strategies/methods/gradient_compression.hpp"

#include <algorithm>
#include <cmath>

#include "strategies/layers/optimizer.hpp"
#include "strategies/methods/data_parallel.hpp"

namespace rehearse {

namespace {

constexpr std::int64_t value_bytes = 4, index_bytes = 4;
constexpr std::int64_t sector = 32;  // what a lone access to memory moves (CUDA programming guide)

Piece sweep(std::string name, double flops, std::int64_t bytes) {
  return {std::move(name),
          Compute{.flops = Flops{flops}, .traffic = Bytes{bytes}, .math = Precision::fp32}};
}

/// Quantising and back: `wire` bytes for each gradient on the way.
std::vector<Piece> casts(std::string_view name, std::int64_t gradients, std::int64_t bytes) {
  return {sweep(std::string{name}, 2 * static_cast<double>(gradients), gradients * bytes)};
}

}  // namespace

std::int64_t sent_of(std::int64_t gradients, double sparsity) {
  const auto sent =
      static_cast<std::int64_t>(std::ceil((1 - sparsity) * static_cast<double>(gradients)));
  return std::clamp<std::int64_t>(sent, 1, gradients);
}

std::vector<double> warmup_sparsities(const Compression& compression) {
  constexpr double first = 0.25;  // sent in the first epoch
  const double last = 1 - compression.sparsity;
  std::vector<double> list;
  for (double epoch = 0; epoch < compression.warmup_epochs; ++epoch)
    list.push_back(
        1 - std::max(last, first * std::pow(last / first, epoch / compression.warmup_epochs)));
  return list;
}

bool corrects_momentum(const Scenario& scenario) {
  return scenario.compression.method == CompressionKind::dgc &&
         scenario.compression.momentum_correction &&
         scenario.training.optimizer == OptimizerKind::momentum;
}

std::vector<Piece> dgc_pack(const Compression& how, bool has_momentum, std::int64_t gradients,
                            std::int64_t gradient_bytes) {
  const auto n = static_cast<double>(gradients);
  const std::int64_t sent = sent_of(gradients, how.sparsity);
  const auto sampled = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(how.sampled_share * static_cast<double>(gradients)));
  std::vector<Piece> pieces;
  if (how.local_clipping) pieces.push_back(sweep("dgc.norm", 2 * n, gradients * gradient_bytes));
  // Velocity and residual are read and written.
  pieces.push_back(sweep("dgc.accumulate", 4 * n,
                         gradients * (gradient_bytes + 2 * value_bytes * (has_momentum ? 2 : 1))));
  // Lone numbers, unless the sample is most of them.
  pieces.push_back(
      sweep("dgc.sample", 0,
            std::min(sampled * sector, gradients * value_bytes) + sampled * value_bytes));
  // A radix sort of 32-bit keys, 8 bits at a time.
  for (int pass = 0; pass < 4; ++pass)
    pieces.push_back(sweep("dgc.sort", 0, 2 * sampled * value_bytes));
  const std::int64_t cleared = has_momentum && how.factor_masking ? 2 : 1;
  pieces.push_back(
      sweep("dgc.select", n,
            gradients * value_bytes + sent * (index_bytes + value_bytes + cleared * sector)));
  return pieces;
}

std::vector<Piece> dgc_unpack(std::int64_t sent, std::size_t ranks, std::int64_t gradients,
                              std::int64_t gradient_bytes) {
  const std::int64_t all = sent * static_cast<std::int64_t>(ranks);
  return {
      sweep("dgc.clear", 0, gradients * gradient_bytes),
      sweep("dgc.add", static_cast<double>(all), all * (index_bytes + value_bytes + 2 * sector))};
}

CompressedDataParallel::Part CompressedDataParallel::part_of(const StepPlan& plan,
                                                             const Bucket& bucket, Family replicas,
                                                             CollectiveUses& uses) const {
  const Scenario& scenario = plan.scenario;
  const std::int64_t each = state_format(scenario.training).gradient.count();
  const std::int64_t gradients = bucket.bytes.count() / each;
  const std::size_t ranks = plan.size(replicas);
  Part part{.bucket = bucket};
  if (method_ == CompressionKind::dgc) {
    const std::int64_t sent = sent_of(gradients, scenario.compression.sparsity);
    part.pack = dgc_pack(scenario.compression, corrects_momentum(scenario), gradients, each);
    part.unpack = dgc_unpack(sent, ranks, gradients, each);
    part.received = Bytes{static_cast<std::int64_t>(ranks) * sent * (index_bytes + value_bytes)};
    part.use = uses.of({replicas, CollectiveKind::all_gather, part.received});
    return part;
  }
  const std::int64_t wire = method_ == CompressionKind::fp16 ? 2 : 1;
  part.pack = casts("compress.cast", gradients, each + wire);
  part.unpack = casts("compress.cast_back", gradients, wire + each);
  if (method_ == CompressionKind::int8) {
    part.look = sweep("compress.largest", static_cast<double>(gradients), gradients * each);
    part.agree = uses.of({replicas, CollectiveKind::all_reduce, Bytes{4}});
  }
  part.received = Bytes{gradients * wire};
  part.use = uses.of({replicas, CollectiveKind::all_reduce, part.received});
  return part;
}

void CompressedDataParallel::plan(const StepPlan& plan, CollectiveUses& uses) {
  const Parallelism& how = plan.scenario.parallelism;
  method_ = plan.scenario.compression.method;
  overlaps_ = how.overlap_grad_reduce;
  const Bytes each = state_format(plan.scenario.training).gradient;
  for (const StageWork& work : plan.works) {
    std::vector<Part>& parts = parts_.emplace_back();
    for (const Held held : {Held::by_all, Held::by_expert_ranks}) {
      if (plan.size(replicas_of(held)) == 1) continue;
      const std::vector<Bytes> gradients = layer_bytes(plan, work, held, each);
      Bytes begin;
      for (const Bucket& bucket : fill_buckets(gradients, bucket_sizes(how))) {
        parts.push_back(part_of(plan, bucket, replicas_of(held), uses));
        parts.back().begin = begin;
        begin += bucket.bytes;
      }
    }
  }
}

void CompressedDataParallel::begin_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  const StateFormat format = state_format(plan.scenario.training);
  const std::int64_t parameters = parameters_of(plan, pipeline_rank);
  out.hold(pipeline_rank, MemoryKind::parameters, parameters * format.parameter);
  out.hold(pipeline_rank, MemoryKind::gradients, parameters * format.gradient);
  // The velocity of momentum correction takes the place of the optimizer's own; what was not sent
  // yet is one more number for each gradient.
  out.hold(pipeline_rank, MemoryKind::optimizer, parameters * format.state);
  if (method_ == CompressionKind::dgc)
    out.hold(pipeline_rank, MemoryKind::gradients, Bytes{parameters * value_bytes});
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
    if (plan.schedule.rank_of[s] == pipeline_rank)
      for (const Part& part : parts_[plan.work_of[s]])
        out.hold(pipeline_rank, MemoryKind::buffers, part.received);
  last_.resize(std::max<std::size_t>(last_.size(), pipeline_rank + 1));
  agreeing_.resize(last_.size());
}

bool CompressedDataParallel::acts_between_layers(const LayerMoment& moment) const {
  return overlaps_ && moment.last_microbatch && completes_gradients(moment.action);
}

void CompressedDataParallel::after_layer(Emitter& out, const LayerMoment& moment) {
  if (!acts_between_layers(moment)) return;
  for (const Part& part : parts_[out.plan().work_of[out.stage()]])
    if (part.bucket.layer == moment.layer) send(out, part, out.stage());
}

void CompressedDataParallel::send(Emitter& out, const Part& part, std::uint32_t stage) {
  if (!part.agree) return pack(out, part);
  out.about(Purpose::compress, part.begin);
  out.kernel(*part.look, Phase::gradients);
  out.about(Purpose::agree, part.begin);
  const Emitter::Ops agreed = out.exchange(*part.agree, out.lane_of(*part.agree), Phase::gradients);
  pack_agreed(out);
  out.of_stage(stage);
  agreeing_[out.pipeline_rank()] = {&part, stage, agreed};
}

void CompressedDataParallel::pack_agreed(Emitter& out) {
  Agreeing& before = agreeing_[out.pipeline_rank()];
  if (before.part == nullptr) return;
  out.wait_for(before.agreed);
  out.of_stage(before.stage);
  pack(out, *before.part);
  before = {};
}

void CompressedDataParallel::pack(Emitter& out, const Part& part) {
  out.about(Purpose::compress, part.begin);
  for (const Piece& piece : part.pack) out.kernel(piece, Phase::gradients);
  last_[out.pipeline_rank()] = out.exchange(part.use, out.lane_of(part.use), Phase::gradients);
}

void CompressedDataParallel::finish_gradients(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  const auto for_each_part = [&](auto&& visit) {
    for (std::uint32_t s = plan.schedule.stages; s-- > 0;) {
      if (plan.schedule.rank_of[s] != pipeline_rank) continue;
      out.of_stage(s);
      for (const Part& part : parts_[plan.work_of[s]]) visit(part, s);
    }
  };
  if (!overlaps_)
    for_each_part([&](const Part& part, std::uint32_t stage) { send(out, part, stage); });
  pack_agreed(out);
  out.wait_for(last_[pipeline_rank]);
  for_each_part([&](const Part& part, std::uint32_t) {
    out.about(Purpose::compress, part.begin);
    for (const Piece& piece : part.unpack) out.kernel(piece, Phase::gradients);
  });
}

std::int64_t CompressedDataParallel::updated_parameters(const StepPlan& plan,
                                                        std::uint32_t pipeline_rank) const {
  return parameters_of(plan, pipeline_rank);
}

void CompressedDataParallel::end_step(Emitter& out, std::uint32_t pipeline_rank) {
  const StepPlan& plan = out.plan();
  if (plan.update == Update::skipped) return;
  // Momentum is in what was sent already.
  out.about(Purpose::optimizer);
  Training training = plan.scenario.training;
  if (corrects_momentum(plan.scenario)) training.optimizer = OptimizerKind::sgd;
  for (const Piece& piece : optimizer_pieces(training, parameters_of(plan, pipeline_rank)))
    out.kernel(piece, Phase::optimizer);
}

}  // namespace rehearse
