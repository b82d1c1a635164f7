// Steps are counted as they begin; averages are all-reduces of parameters behind the optimizer.
#include "strategies/methods/local_sgd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/layers/optimizer.hpp"

namespace rehearse {

namespace {

// At the beginning of an interval, `t` steps after the first.
std::size_t interval_at(const LocalSgd& how, std::size_t t) {
  if (how.kind != LocalInterval::adaptive) return how.interval;
  const double loss = 1 / (1 + static_cast<double>(t) / how.loss_half_steps);
  return static_cast<std::size_t>(
      std::ceil(std::sqrt(loss) * static_cast<double>(how.interval) * (1 - 1e-12)));
}

}  // namespace

std::vector<LocalStep> local_schedule(const LocalSgd& how) {
  if (how.interval == 0) return {LocalStep::synchronous};
  const std::size_t first = how.kind == LocalInterval::post_local ? how.synchronous_steps : 0;
  const std::size_t steps = how.steps > 0 ? how.steps : first + how.interval;
  std::vector<LocalStep> schedule;
  std::size_t left = 0;  // of the interval
  while (schedule.size() < steps) {
    if (schedule.size() < first) {
      schedule.push_back(LocalStep::synchronous);
      continue;
    }
    if (left == 0) left = interval_at(how, schedule.size() - first);
    schedule.push_back(--left == 0 ? LocalStep::averaging : LocalStep::local);
  }
  return schedule;
}

std::size_t simulated_steps(const Scenario& scenario) {
  return local_schedule(scenario.local_sgd).size();
}

namespace {

using KeyProblems = std::vector<KeyProblem>;

KeyProblem problem(std::vector<std::string> keys, std::string_view message) {
  return {std::move(keys), std::string{message}};
}

// Whether the keys of [local_sgd] go together.
KeyProblems interval_problems(const LocalSgd& how) {
  KeyProblems problems;
  const bool post = how.kind == LocalInterval::post_local,
             adapts = how.kind == LocalInterval::adaptive;
  if (post && how.synchronous_steps == 0)
    problems.push_back(problem({"interval_kind"},
                               "interval_kind post_local needs synchronous_steps: how many steps "
                               "reduce their gradients first"));
  if (!post && how.synchronous_steps > 0)
    problems.push_back(problem({"synchronous_steps"},
                               "synchronous_steps come first where interval_kind is post_local"));
  if (adapts && how.loss_half_steps == 0)
    problems.push_back(problem({"interval_kind"},
                               "interval_kind adaptive needs loss_half_steps: in how many steps "
                               "the loss is modelled to halve"));
  if (!adapts && how.loss_half_steps > 0)
    problems.push_back(problem({"loss_half_steps"},
                               "loss_half_steps shrinks the interval where interval_kind is "
                               "adaptive"));
  if (adapts && how.steps == 0)
    problems.push_back(problem({"interval_kind"},
                               "interval_kind adaptive needs simulated_steps: over how many the "
                               "interval shrinks"));
  constexpr std::size_t most = 20'000;
  const std::size_t steps = how.steps > 0 ? how.steps : how.interval + how.synchronous_steps;
  if (steps > most)
    problems.push_back(
        problem({"simulated_steps", "interval", "synchronous_steps"},
                fmt::format("{} steps are to be simulated, more than the {} that are worth waiting "
                            "for; set simulated_steps",
                            steps, most)));
  return problems;
}

}  // namespace

std::vector<KeyProblem> local_problems(const Scenario& scenario, std::size_t world) {
  const LocalSgd& how = scenario.local_sgd;
  const Parallelism& p = scenario.parallelism;
  if (how == LocalSgd{}) return {};
  if (how.interval == 0)
    return {problem({"interval_kind", "synchronous_steps", "loss_half_steps", "simulated_steps"},
                    "[local_sgd] says how, but not how often to average: interval is missing")};
  KeyProblems problems = interval_problems(how);
  const std::size_t splits = p.tensor * p.pipeline * p.context;
  if (world / splits <= 1)
    problems.push_back(problem(
        {"interval"},
        fmt::format("local SGD averages replicas, and there is one: world {} / (tp {} × pp {} × cp "
                    "{}) = dp {}; its ranks are parts of one model and must talk in every step",
                    world, p.tensor, p.pipeline, p.context, world / splits)));
  if (p.zero_stage > 0)
    problems.push_back(problem({"zero_stage", "use_distributed_optimizer"},
                               "ZeRO cuts one state over replicas that are equal, but local "
                               "replicas differ between averages; set zero_stage to 0"));
  if (scenario.compression.method != CompressionKind::none)
    problems.push_back(problem({"method", "interval"},
                               "local SGD sends parameters now and then, compression gradients in "
                               "every step: take one of them"));
  if (p.context > 1 || p.expert > 1)
    problems.push_back(problem({"context_parallel_size", "expert_model_parallel_size"},
                               "context- and expert-parallel ranks add up gradients in every step, "
                               "so they cannot be local; set cp and ep to 1"));
  return problems;
}

void LocalSgdStrategy::plan(const StepPlan& plan, CollectiveUses& uses) {
  steps_ = local_schedule(plan.scenario.local_sgd);
  begun_.assign(plan.schedule.ranks.size(), 0);
  synchronous_.plan(plan, uses);
  const Parallelism& how = plan.scenario.parallelism;
  const Bytes each = state_format(plan.scenario.training).parameter;
  for (const StageWork& work : plan.works) {
    std::vector<std::uint32_t>& averages = averages_.emplace_back();
    for (const Bucket& bucket :
         fill_buckets(layer_bytes(plan, work, Held::by_all, each), bucket_sizes(how)))
      averages.push_back(uses.of({Family::replicas, CollectiveKind::all_reduce, bucket.bytes}));
  }
}

void LocalSgdStrategy::begin_step(Emitter& out, std::uint32_t pipeline_rank) {
  step_ = begun_[pipeline_rank]++;
  if (step_ == 0) synchronous_.begin_step(out, pipeline_rank);
}

bool LocalSgdStrategy::acts_between_layers(const LayerMoment& moment) const {
  return steps_[step_] == LocalStep::synchronous && synchronous_.acts_between_layers(moment);
}

void LocalSgdStrategy::after_layer(Emitter& out, const LayerMoment& moment) {
  if (acts_between_layers(moment)) synchronous_.after_layer(out, moment);
}

void LocalSgdStrategy::finish_gradients(Emitter& out, std::uint32_t pipeline_rank) {
  if (steps_[step_] == LocalStep::synchronous) synchronous_.finish_gradients(out, pipeline_rank);
}

std::int64_t LocalSgdStrategy::updated_parameters(const StepPlan& plan,
                                                  std::uint32_t pipeline_rank) const {
  return parameters_of(plan, pipeline_rank);
}

void LocalSgdStrategy::end_step(Emitter& out, std::uint32_t pipeline_rank) {
  if (steps_[step_] == LocalStep::synchronous) return synchronous_.end_step(out, pipeline_rank);
  const StepPlan& plan = out.plan();
  run_optimizer(out, parameters_of(plan, pipeline_rank));
  if (steps_[step_] == LocalStep::local) return;
  Emitter::Ops last;
  for (std::uint32_t s = plan.schedule.stages; s-- > 0;) {
    if (plan.schedule.rank_of[s] != pipeline_rank) continue;
    out.of_stage(s);
    Bytes begin;
    for (const std::uint32_t use : averages_[plan.work_of[s]]) {
      out.about(Purpose::average_parameters, begin);
      last = out.exchange(use, Lane::parameters, Phase::parameters);
      begin += plan.uses[use].size;
    }
  }
  out.wait_for(last);
}

}  // namespace rehearse
