// Layers are dealt out to stages, pieces strung into tapes, and kernels priced once.
#include "strategies/plan/step_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "strategies/layers/autocast.hpp"
#include "strategies/layers/framework_kernels.hpp"
#include "strategies/layers/fusion.hpp"
#include "strategies/layers/loss_scaling_pieces.hpp"
#include "strategies/layers/winograd.hpp"
#include "strategies/plan/stage_pricing.hpp"
#include "strategies/plan/step_schedule.hpp"

namespace rehearse {

namespace {

/// Layers of each stage: [begin, end) in the workload.
using Range = std::pair<std::size_t, std::size_t>;

// A transformer's blocks are dealt out evenly, or as the scenario says; what stands before and
// after them goes with the first and the last.
std::vector<Range> deal_blocks(const Workload& workload, const Parallelism& how,
                               std::size_t stages) {
  std::size_t before = 0, blocks = 0;
  for (const Layer& layer : workload.layers) {
    if (layer.kind == LayerKind::block) ++blocks;
    if (blocks == 0) ++before;
  }
  std::vector<std::size_t> counts = how.layers_per_stage;
  if (counts.empty()) counts.assign(stages, blocks / stages);
  ASSERT(counts.size() == stages && std::accumulate(counts.begin(), counts.end(), 0u) == blocks);
  std::vector<Range> ranges;
  std::size_t next = before;
  for (const std::size_t count : counts) {
    ranges.emplace_back(next, next + count);
    next += count;
  }
  ranges.front().first = 0;
  ranges.back().second = workload.layers.size();
  return ranges;
}

// Other models have layers of all sizes: each stage takes its share of the work, at least a layer.
std::vector<Range> deal_by_work(const PieceTable& pieces, const Parallelism& how,
                                std::size_t stages) {
  std::vector<Range> ranges;
  std::size_t next = 0;
  if (!how.layers_per_stage.empty()) {
    for (const std::size_t count : how.layers_per_stage) {
      ranges.emplace_back(next, next + count);
      next += count;
    }
    return ranges;
  }
  double total = 0, done = 0;
  for (std::size_t l = 0; l < pieces.size(); ++l) total += pieces[l].model_flops.count();
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t begin = next, leave = stages - s - 1;
    const double until = total * static_cast<double>(s + 1) / static_cast<double>(stages);
    while (next < pieces.size() - leave &&
           (next == begin || leave == 0 || done + pieces[next].model_flops.count() / 2 < until))
      done += pieces[next++].model_flops.count();
    ranges.emplace_back(begin, next);
  }
  return ranges;
}

bool has_blocks(const Workload& workload) {
  return std::any_of(workload.layers.begin(), workload.layers.end(),
                     [](const Layer& layer) { return layer.kind == LayerKind::block; });
}

Family family_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::tensor:
      return Family::tensor;
    case Dimension::context:
      return Family::context;
    case Dimension::expert:
      return Family::expert;
    default:
      return Family::replicas;
  }
}

class Pricing {
 public:
  Pricing(StepPlan& plan, const Accelerator& device, const CostModel& cost)
      : plan_{plan}, device_{device}, cost_{cost}, times_(plan.pieces.size()) {}

  void operator()(Tape& tape) {
    for (TapeStep& step : tape.steps) {
      const Piece& piece = plan_.pieces[step.piece];
      if (const auto* exchange = std::get_if<Exchange>(&piece.work)) {
        step.use = plan_.uses.of({family_of(exchange->dimension), exchange->kind, exchange->size});
        continue;
      }
      std::optional<Time>& time = times_[static_cast<std::size_t>(step.piece)];
      if (!time) time = duration_of(std::get<Compute>(piece.work), device_, cost_);
      step.time = *time;
    }
  }

 private:
  StepPlan& plan_;
  const Accelerator& device_;
  const CostModel& cost_;
  std::vector<std::optional<Time>> times_;  // by piece
};

/// `listed` by kind of layer.
StageWork work_of(const std::vector<ListedLayer>& listed, const std::vector<std::uint32_t>& kinds,
                  const Parallelism& how, bool in_halves) {
  StageWork work{.layers = kinds};
  std::vector<ListedLayer> layers;
  for (const std::uint32_t kind : kinds) layers.push_back(listed[kind]);
  work.forward = forward_tape(layers);
  work.backward = backward_tape(layers, BackwardPart::all, how.recompute);
  if (in_halves) {
    work.backward_input = backward_tape(layers, BackwardPart::inputs, how.recompute);
    work.backward_weight = backward_tape(layers, BackwardPart::weights, how.recompute);
  }
  work.input = layers.front().layer->input;
  work.output = layers.back().layer->output;
  for (const ListedLayer& listed_layer : layers) work.parameters += listed_layer.layer->parameters;
  return work;
}

bool has_halves(const Schedule& schedule) {
  for (const auto& row : schedule.ranks)
    for (const auto& action : row)
      if (action && action->kind == ActionKind::backward_weight) return true;
  return false;
}

// Ranks of tensor parallelism wait for the sum of an input's gradients before they go on. What
// sequence parallelism gathers and scatters stays beside the products.
LayerPieces with_sums_awaited(LayerPieces layer) {
  for (Piece& piece : layer.backward) {
    const auto* exchange = std::get_if<Exchange>(&piece.work);
    if (exchange != nullptr && exchange->dimension == Dimension::tensor &&
        exchange->kind == CollectiveKind::all_reduce)
      piece.beside = 0;
  }
  return layer;
}

// The passes over the pieces, in their order: casts are kernels that may be fused.
PieceTable pieces_for(const Workload& workload, const Scenario& scenario,
                      const Accelerator& device) {
  const Training& training = scenario.training;
  PieceTable pieces(workload, sharding_of(workload, scenario.parallelism, training));
  // What was measured was measured with all that its library does.
  if (device.winograd_share < 1 && device.measured.empty())
    pieces.apply([&](LayerPieces layer) { return winograd_layer(std::move(layer), device); });
  if (!scenario.parallelism.async_tensor_all_reduce) pieces.apply(with_sums_awaited);
  const Transformer& model = workload.transformer;
  const UnfusedModel unfused{model.norm, model.out_bias || model.mlp_bias, training.dropout > 0};
  if (training.framework > 0)
    pieces.apply([&](LayerPieces layer) {
      return framework_layer(std::move(layer), frameworks()[training.framework], device, unfused);
    });
  if (training.autocast) pieces.apply(autocast_layer);
  if (training.fusion == Fusion::elementwise) pieces.apply(fused_layer);
  return pieces;
}

void put_before(Tape& tape, PieceId piece, Phase phase) {
  if (tape.steps.empty()) return;
  tape.steps.insert(tape.steps.begin(), {piece, phase});
  for (std::uint32_t& end : tape.layer_end) ++end;
}

// Only the last stage has a loss, and no other stage the same layers.
void scale_loss(StepPlan& plan) {
  StageWork& last = plan.works[plan.work_of.back()];
  const PieceId scale = plan.pieces.add(scale_piece());
  put_before(last.backward, scale, Phase::backward);
  put_before(last.backward_input, scale, Phase::backward_input);
}

// Every tensor rank has the whole of what the next stage needs: each sends a part of it, and the
// ranks there gather it. What sequence parallelism parts is handed over as it is. The first stage
// receives no activations and the last no gradients, and no other stage has their layers.
void scatter_messages(StepPlan& plan) {
  const Parallelism& how = plan.scenario.parallelism;
  const auto ranks = static_cast<std::int64_t>(plan.size(Family::tensor));
  if (ranks == 1 || how.sequence_parallel || plan.schedule.ranks.size() == 1) return;
  const auto gather = [&](Bytes size) {
    const Exchange exchange{Dimension::tensor, CollectiveKind::all_gather, size};
    return plan.pieces.add({.name = "stage.gather", .work = exchange});
  };
  const auto part = [&](Bytes size) { return Bytes{(size.count() + ranks - 1) / ranks}; };
  for (std::uint32_t w = 0; w < plan.works.size(); ++w) {
    StageWork& work = plan.works[w];
    if (w != plan.work_of.front()) {
      put_before(work.forward, gather(work.input), Phase::forward);
      work.input = part(work.input);
    }
    if (w == plan.work_of.back()) continue;
    const PieceId gradients = gather(work.output);
    put_before(work.backward, gradients, Phase::backward);
    put_before(work.backward_input, gradients, Phase::backward_input);
    work.output = part(work.output);
  }
}

void deal_out(StepPlan& plan, const Workload& workload, const Accelerator& device,
              const CostModel& cost) {
  const Parallelism& how = plan.scenario.parallelism;
  const std::size_t stages = plan.schedule.stages;
  const std::vector<Range> ranges = has_blocks(workload) ? deal_blocks(workload, how, stages)
                                                         : deal_by_work(plan.layers, how, stages);
  std::vector<ListedLayer> listed;
  for (const LayerPieces& kind : plan.layers.kinds()) listed.push_back(plan.pieces.add(kind));
  const bool in_halves = has_halves(plan.schedule);
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (const auto& [begin, end] : ranges) {
    std::vector<std::uint32_t> kinds;
    for (std::size_t l = begin; l < end; ++l) kinds.push_back(plan.layers.kind(l));
    const auto [slot, is_new] = known.emplace(kinds, static_cast<std::uint32_t>(plan.works.size()));
    if (is_new) plan.works.push_back(work_of(listed, kinds, how, in_halves));
    plan.work_of.push_back(slot->second);
  }
  if (plan.scenario.training.loss_scaling == LossScaling::dynamic) scale_loss(plan);
  if (frameworks()[plan.scenario.training.framework].scatters_messages) scatter_messages(plan);
  Pricing price(plan, device, cost);
  for (StageWork& work : plan.works) {
    price(work.forward);
    price(work.backward);
    price(work.backward_input);
    price(work.backward_weight);
    if (has_blocks(workload)) slow_sweeps(work, plan.pieces, device);
    slow_clocks(work, plan.pieces, device);
    charge_slowest_replica(work, plan.pieces, plan.placement.size(Replicas::all),
                           frameworks()[plan.scenario.training.framework].spread);
  }
}

std::int64_t sequence_length(const Workload& workload, const Training& training) {
  if (workload.sample != SampleKind::sequence) return 0;
  return training.seq_length > 0 ? static_cast<std::int64_t>(training.seq_length)
                                 : workload.seq_length;
}

}  // namespace

Dimension dimension_of(Family family) {
  switch (family) {
    case Family::tensor:
      return Dimension::tensor;
    case Family::context:
      return Dimension::context;
    case Family::expert:
      return Dimension::expert;
    case Family::ends:
    case Family::stages:
      return Dimension::pipeline;
    default:
      return Dimension::data;
  }
}

bool is_joint(Family family) { return family == Family::ends || family == Family::stages; }

std::uint32_t CollectiveUses::of(const CollectiveUse& use) {
  const auto found = std::find(uses_.begin(), uses_.end(), use);
  const auto number = static_cast<std::uint32_t>(found - uses_.begin());
  if (number == uses_.size()) uses_.push_back(use);
  return number;
}

std::size_t StepPlan::size(Family family) const {
  switch (family) {
    case Family::replicas:
      return placement.size(Replicas::all);
    case Family::shards:
      return placement.size(Replicas::shards);
    case Family::copies:
      return placement.size(Replicas::copies);
    case Family::expert_replicas:
      return placement.size(Replicas::experts);
    case Family::ends:
      return 2;
    default:
      return placement.size(dimension_of(family));
  }
}

StepPlan plan_step(const Scenario& scenario, const Workload& workload, std::size_t world,
                   const Accelerator& device, const CostModel& cost, std::size_t microbatches) {
  const Parallelism& how = scenario.parallelism;
  Placement placement = place_ranks(how, world);
  Batch batch = batch_of(scenario.training, placement.size(Dimension::data));
  if (microbatches == 0) microbatches = batch.microbatches;
  StepPlan plan{
      .scenario = scenario,
      .placement = std::move(placement),
      .batch = batch,
      .schedule = schedule_for(how, microbatches),
      .layers = pieces_for(workload, scenario, device),
      .pieces = {},
      .works = {},
      .work_of = {},
      .uses = {},
      .model_flops = {},
      .seq_length = static_cast<std::size_t>(sequence_length(workload, scenario.training)),
      .parameters = workload.parameters()};
  if (plan.schedule.rank_of.front() != plan.schedule.rank_of.back())
    plan.tied_copy = plan.layers.copy_tied_parameters();
  deal_out(plan, workload, device, cost);
  for (std::size_t l = 0; l < plan.layers.size(); ++l)
    plan.model_flops += plan.layers[l].model_flops;
  plan.model_flops = static_cast<double>(batch.global) /
                     static_cast<double>(scenario.training.micro_batch_size) * plan.model_flops;
  return plan;
}

}  // namespace rehearse
