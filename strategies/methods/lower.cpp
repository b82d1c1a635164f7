// Walks the schedule of every pipeline rank, always taking an action whose inputs are on their way,
// so that every op names earlier ones only.
#include "strategies/methods/lower.hpp"

#include <algorithm>

#include "strategies/lowering/flows.hpp"
#include "strategies/lowering/perturb.hpp"
#include "strategies/lowering/step_pricing.hpp"
#include "strategies/lowering/traffic_count.hpp"
#include "strategies/methods/data_parallel.hpp"
#include "strategies/methods/gradient_compression.hpp"
#include "strategies/methods/local_sgd.hpp"
#include "strategies/methods/loss_scaling.hpp"
#include "strategies/methods/shared_gradients.hpp"
#include "strategies/methods/zero.hpp"

namespace rehearse {

namespace {

class Lowering {
 public:
  Lowering(const StepPlan& plan, Emitter& out, Strategy& strategy, SharedGradients& shared)
      : plan_{plan}, schedule_{plan.schedule}, strategy_{strategy}, shared_{shared}, out_{out} {}

  StepProgram run() {
    // The 16-bit copies that casts make of weights are there from forward to backward.
    for (std::uint32_t r = 0; r < schedule_.ranks.size() && plan_.scenario.training.autocast; ++r)
      out_.hold(r, MemoryKind::buffers, Bytes{2 * parameters_of(plan_, r)});
    for (std::size_t step = simulated_steps(plan_.scenario); step > 0; --step) run_step();
    return out_.finish();
  }

 private:
  void run_step() {
    out_.next_step();
    const std::size_t cells = schedule_.stages * schedule_.microbatches;
    forward_.assign(cells, {});
    backward_.assign(cells, {});
    forward_done_.assign(cells, false);
    backward_done_.assign(cells, false);
    seen_.assign(schedule_.stages, {});
    const auto ranks = static_cast<std::uint32_t>(schedule_.ranks.size());
    for (std::uint32_t r = 0; r < ranks; ++r) {
      out_.at_rest(r);
      strategy_.begin_step(out_, r);
    }
    walk();
    for (std::uint32_t r = 0; r < ranks; ++r) {
      out_.at_rest(r);
      strategy_.finish_gradients(out_, r);
    }
    shared_.run(out_, strategy_);
    check_overflow(out_, strategy_);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      out_.at_rest(r);
      strategy_.end_step(out_, r);
    }
  }

  void walk() {
    std::vector<std::size_t> next(schedule_.ranks.size());
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t r = 0; r < schedule_.ranks.size(); ++r)
        while (next[r] < schedule_.ranks[r].size()) {
          const std::optional<Action>& action = schedule_.ranks[r][next[r]];
          if (action && !is_ready(*action)) break;
          if (action) act(r, *action);
          ++next[r];
          moved = true;
        }
    }
    for (std::size_t r = 0; r < next.size(); ++r)
      ASSERT(next[r] == schedule_.ranks[r].size());  // schedules are checked when they are made
  }

  std::size_t cell(std::uint32_t stage, std::uint32_t microbatch) const {
    return stage * std::size_t{schedule_.microbatches} + microbatch;
  }

  bool is_ready(const Action& action) const {
    const std::size_t here = cell(action.stage, action.microbatch);
    switch (action.kind) {
      case ActionKind::forward:
        return action.stage == 0 || forward_done_[cell(action.stage - 1, action.microbatch)];
      case ActionKind::backward:
      case ActionKind::backward_input:
        return forward_done_[here] && (action.stage + 1 == schedule_.stages ||
                                       backward_done_[cell(action.stage + 1, action.microbatch)]);
      case ActionKind::backward_weight:
        return backward_done_[here];
    }
    return false;
  }

  void act(std::uint32_t rank, const Action& action) {
    out_.at(rank, action.stage, action.microbatch);
    const OpId begin = out_.next_op();
    const std::size_t here = cell(action.stage, action.microbatch);
    const StageWork& work = plan_.work(action.stage);
    switch (action.kind) {
      case ActionKind::forward:
        out_.wait_for(forward_[here]);
        run(action, work.forward);
        hand_over(action.stage + 1, action.microbatch, Lane::forward, work.output, forward_);
        forward_done_[here] = true;
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
        out_.wait_for(backward_[here]);
        run(action, action.kind == ActionKind::backward ? work.backward : work.backward_input);
        if (action.stage > 0)
          hand_over(action.stage - 1, action.microbatch, Lane::backward, work.input, backward_);
        backward_done_[here] = true;
        break;
      case ActionKind::backward_weight:
        run(action, work.backward_weight);
        break;
    }
    out_.note_action(action, begin);
  }

  void hand_over(std::uint32_t stage, std::uint32_t microbatch, Lane lane, Bytes size,
                 std::vector<Emitter::Ops>& arrivals) {
    if (stage >= schedule_.stages || schedule_.rank_of[stage] == out_.pipeline_rank()) return;
    arrivals[cell(stage, microbatch)] = out_.send(schedule_.rank_of[stage], lane, size);
  }

  void run(const Action& action, const Tape& tape) {
    const std::uint32_t count = seen_[action.stage][static_cast<std::size_t>(action.kind)]++;
    LayerMoment moment{.action = action.kind,
                       .layer = 0,
                       .first_microbatch = count == 0,
                       .last_microbatch = count + 1 == schedule_.microbatches};
    const auto layers = static_cast<std::uint32_t>(tape.layer_end.size());
    const auto layer_at = [&](std::uint32_t i) {
      return action.kind == ActionKind::forward ? i : layers - 1 - i;
    };
    if (strategy_.acts_between_layers(moment)) {
      for (std::uint32_t i = 0; i < layers; ++i) {
        moment.layer = layer_at(i);
        strategy_.before_layer(out_, moment);
        out_.run(tape, i, i + 1);
        strategy_.after_layer(out_, moment);
      }
    } else {
      out_.run(tape, 0, layers);
    }
    account(action);
  }

  // Activations are there from the beginning of the forward pass to the end of the backward pass.
  // Recomputation keeps the layers' inputs, and has one layer's activations at a time.
  void account(const Action& action) {
    const Recompute recompute = plan_.scenario.parallelism.recompute;
    const bool ends = completes_gradients(action.kind);
    if (action.kind != ActionKind::forward && !ends) return;
    Activations kept{}, working{};
    for (const std::uint32_t kind : plan_.work(action.stage).layers) {
      const LayerPieces& layer = plan_.layers.kinds()[kind];
      const bool again = recompute == Recompute::full && layer.recomputes;
      const Activations& all =
          recompute == Recompute::selective ? layer.kept_selective : layer.kept;
      for (std::size_t k = 0; k < activation_kinds; ++k) {
        if (!again) kept[k] += all[k];
        if (again) working[k] = std::max(working[k], all[k]);
      }
      if (again) kept[static_cast<std::size_t>(ActivationKind::input)] += layer.input;
    }
    for (std::size_t k = 0; k < activation_kinds; ++k) {
      const auto kind = static_cast<MemoryKind>(static_cast<std::size_t>(MemoryKind::input) + k);
      if (action.kind == ActionKind::forward) {
        out_.memory(out_.first(), false, kind, kept[k]);
      } else {
        out_.memory(out_.first(), false, kind, working[k]);
        out_.memory(out_.last(), true, kind, Bytes{} - working[k] - kept[k]);
      }
    }
  }

  const StepPlan& plan_;
  const Schedule& schedule_;
  Strategy& strategy_;
  SharedGradients& shared_;
  Emitter& out_;
  std::vector<Emitter::Ops> forward_, backward_;    // messages on their way, by cell
  std::vector<bool> forward_done_, backward_done_;  // by cell
  std::vector<std::array<std::uint32_t, 4>> seen_;  // actions of each kind, by stage
};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const StepPlan& plan) {
  if (plan.scenario.compression.method != CompressionKind::none)
    return std::make_unique<CompressedDataParallel>();
  if (plan.scenario.local_sgd.interval > 0) return std::make_unique<LocalSgdStrategy>();
  if (plan.scenario.parallelism.zero_stage == 0) return std::make_unique<DataParallel>();
  return std::make_unique<Zero>();
}

StepPlan complete_plan(StepPlan plan, StepNetwork& network) {
  CollectiveUses uses = plan.uses;
  make_strategy(plan)->plan(plan, uses);
  plan.uses = std::move(uses);
  plan_overflow_check(plan);
  uses = plan.uses;
  SharedGradients().plan(plan, uses);
  plan.uses = std::move(uses);
  charge_host_launches(plan, network);
  charge_framework_overhead(plan, network);
  return plan;
}

// The passes over a lowered step, in their order.
StepProgram lower_step(const StepPlan& plan, StepNetwork& network, const CostModel& cost,
                       const LowerOptions& options) {
  const Imperfections imperfections(plan.scenario.imperfection, plan.placement.world());
  const FoldedRanks& folded =
      network.fold(plan.uses.all(), handovers_of(plan.schedule),
                   options.fold && !imperfections.distinguishes_ranks(), imperfections.colours());
  CollectiveUses uses = plan.uses;
  const std::unique_ptr<Strategy> strategy = make_strategy(plan);
  strategy->plan(plan, uses);
  SharedGradients shared;
  shared.plan(plan, uses);
  ASSERT(uses == plan.uses);  // the plan is complete
  Emitter out(plan, folded, network, {options.grain, imperfections.is_ideal(), options.notes});
  StepProgram step = Lowering(plan, out, *strategy, shared).run();
  if (options.last == Pass::lower) return step;
  perturb_kernels(step, imperfections, accelerator_of(network.topology()), cost);
  if (options.last == Pass::perturb) return step;
  step.needs_transfers = needs_transfers(step, plan, network, folded);
  if (options.count_links) step.link_bytes = link_bytes(step, plan, network);
  make_flows(step, plan, network, folded, imperfections);
  return step;
}

}  // namespace rehearse
