// Three exchanges at the end of a step, each after the one before it.
#include "strategies/methods/shared_gradients.hpp"

#include "strategies/layers/optimizer.hpp"

namespace rehearse {

namespace {

constexpr Bytes norm_size{4};  // one number, in fp32

// Of gradients that ZeRO cuts (from stage 2 on) a rank has its share. Megatron's distributed
// optimizer (stage 1) still sums the whole.
Bytes held(const StepPlan& plan, std::int64_t parameters) {
  const auto shards = plan.scenario.parallelism.zero_stage < 2
                          ? 1
                          : static_cast<std::int64_t>(plan.size(Family::shards));
  return (parameters + shards - 1) / shards * state_format(plan.scenario.training).gradient;
}

std::int64_t partial_parameters(const StepPlan& plan, std::uint32_t pipeline_rank) {
  std::int64_t count = 0;
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s)
    if (plan.schedule.rank_of[s] == pipeline_rank)
      for (const std::uint32_t kind : plan.work(s).layers)
        count += plan.layers.kinds()[kind].partial_parameters;
  return count;
}

// As Megatron flattens them for one exchange, and copies the sums back: read and written.
Piece copy_kernel(const StepPlan& plan, std::string name, std::int64_t parameters) {
  const Compute work{.traffic = 2 * held(plan, parameters), .math = Precision::fp32};
  return {std::move(name), work};
}

Piece norm_kernel(const StepPlan& plan, std::int64_t parameters) {
  const Compute work{.flops = Flops{2.0 * static_cast<double>(parameters)},
                     .traffic = parameters * state_format(plan.scenario.training).gradient,
                     .math = Precision::fp32};
  return {"gradients.norm", work};
}

}  // namespace

bool clips_gradients(const StepPlan& plan) {
  const Compression& compression = plan.scenario.compression;
  if (compression.method == CompressionKind::dgc && compression.local_clipping) return false;
  const std::optional<double>& longest = plan.scenario.training.clip_grad;
  return longest ? *longest > 0 : plan.seq_length > 0;
}

void SharedGradients::plan(const StepPlan& plan, CollectiveUses& uses) {
  const auto places = static_cast<std::uint32_t>(plan.schedule.ranks.size());
  for (std::uint32_t r = 0; r < places; ++r) {
    const std::int64_t parameters = partial_parameters(plan, r);
    std::optional<std::uint32_t>& use = partial_.emplace_back();
    if (parameters > 0)
      use = uses.of({Family::tensor, CollectiveKind::all_reduce, held(plan, parameters)});
  }
  if (plan.tied_copy > 0)
    tied_ = uses.of({Family::ends, CollectiveKind::all_reduce, held(plan, plan.tied_copy),
                     plan.schedule.rank_of.front(), plan.schedule.rank_of.back()});
  clips_ = clips_gradients(plan);
  if (!clips_) return;
  const bool zero = plan.scenario.parallelism.zero_stage > 0;
  const auto use = [&](Family family) {
    return uses.of({family, CollectiveKind::all_reduce, norm_size});
  };
  if (plan.size(Family::tensor) > 1) norm_.push_back(use(Family::tensor));
  if (zero && plan.size(Family::shards) > 1) norm_.push_back(use(Family::shards));
  if (!zero && plan.size(Family::expert) > 1) norm_.push_back(use(Family::expert));
  if (plan.size(Family::stages) > 1) stages_ = use(Family::stages);
}

void SharedGradients::run(Emitter& out, const Strategy& strategy) {
  sum_partial(out);
  sum_tied(out);
  if (clips_) take_norm(out, strategy);
}

void SharedGradients::sum_partial(Emitter& out) {
  for (std::uint32_t r = 0; r < partial_.size(); ++r) {
    if (!partial_[r]) continue;
    out.at_rest(r);
    out.about(Purpose::partial_gradients);
    const std::int64_t parameters = partial_parameters(out.plan(), r);
    out.kernel(copy_kernel(out.plan(), "gradients.pack", parameters), Phase::gradients);
    out.wait_for(out.exchange(*partial_[r], Lane::layer, Phase::gradients));
    out.kernel(copy_kernel(out.plan(), "gradients.unpack", parameters), Phase::gradients);
  }
}

void SharedGradients::sum_tied(Emitter& out) {
  if (!tied_) return;
  out.about(Purpose::tied_gradients);
  const Emitter::Ops ops = out.exchange_of_all(*tied_, Phase::gradients);
  for (const std::uint32_t r :
       {out.plan().schedule.rank_of.front(), out.plan().schedule.rank_of.back()}) {
    out.at_rest(r);
    out.wait_for(ops);
  }
}

void SharedGradients::take_norm(Emitter& out, const Strategy& strategy) {
  const auto places = static_cast<std::uint32_t>(partial_.size());
  for (std::uint32_t r = 0; r < places; ++r) {
    out.at_rest(r);
    out.about(Purpose::norm);
    const std::int64_t parameters = strategy.updated_parameters(out.plan(), r);
    if (parameters > 0) out.kernel(norm_kernel(out.plan(), parameters), Phase::optimizer);
    Emitter::Ops before = out.last();
    for (const std::uint32_t use : norm_) {
      before = out.exchange_after(use, out.lane_of(use), Phase::gradients, before);
      out.wait_for(before);
    }
  }
  if (!stages_) return;
  out.about(Purpose::norm);
  const Emitter::Ops ops = out.exchange_of_all(*stages_, Phase::gradients);
  for (std::uint32_t r = 0; r < places; ++r) {
    out.at_rest(r);
    out.wait_for(ops);
  }
}

}  // namespace rehearse
