// The steps of a prediction, and the shortcut of a sweep.
#include "strategies/predict/predictor.hpp"

#include <algorithm>

#include "sim/engine/cost_model.hpp"
#include "strategies/methods/local_sgd.hpp"
#include "strategies/methods/lower.hpp"
#include "strategies/plan/imperfections.hpp"
#include "strategies/plan/step_schedule.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/local_average.hpp"
#include "strategies/predict/server_run.hpp"
#include "topology/files/fields.hpp"

namespace rehearse {

namespace {

// In some tenths of a second.
constexpr std::size_t most_transfers = 400'000;

TimeUse sum(TimeUse a, const TimeUse& b, std::int64_t times) {
  a.compute += times * b.compute;
  for (std::size_t d = 0; d < dimension_count; ++d) a.exposed[d] += times * b.exposed[d];
  a.bubble += times * b.bubble;
  return a;
}

void average_roles(Prediction& prediction) {
  TimeUse total;
  std::int64_t ranks = 0;
  for (const RoleReport& role : prediction.roles) {
    total = sum(total, role.time, role.ranks);
    ranks += role.ranks;
  }
  const auto mean = [&](Time time) { return Time::picoseconds(time.ps() / ranks); };
  prediction.mean.compute = mean(total.compute);
  prediction.mean.bubble = mean(total.bubble);
  for (std::size_t d = 0; d < dimension_count; ++d)
    prediction.mean.exposed[d] = mean(total.exposed[d]);
}

RoleReport report_on(const Accounts& accounts, const Timeline& timeline, const Role& role,
                     std::size_t number, const Accelerator& device) {
  const MemoryPeak peak = memory_peak(timeline, role);
  return {.name = role.name,
          .ranks = role.ranks,
          .rank = role.rank,
          .time = accounts.time_use(number, {}),
          .communication = accounts.communication(number, {}),
          .peak = peak.use,
          .peak_bytes = peak.total,
          .capacity = device.memory};
}

void refuse_network_jitter(const Scenario& scenario) {
  if (scenario.imperfection.network_jitter > 0)
    throw InputError(
        "network_jitter is drawn for exchanges as a whole, and this way to run a step takes them "
        "apart; leave it out, or use --engine fast");
}

/// Schedules that go round the ranks take as many micro-batches at a time as there are ranks.
std::uint32_t microbatches_of_round(const Schedule& schedule) {
  const auto ranks = static_cast<std::uint32_t>(schedule.ranks.size());
  return schedule.stages > ranks && schedule.rank_of[ranks] == 0 ? ranks : 1;
}

}  // namespace

StepPredictor::StepPredictor(const Topology& topology, const CostModel& cost, Crowds crowds)
    : topology_{topology},
      crowds_{crowds},
      cost_{cost},
      routing_{topology},
      engine_{routing_, cost_},
      families_{routing_, engine_} {
  ASSERT(topology.rank_count() > 0);
}

StepNetwork& StepPredictor::network(const Placement& placement, const CollectiveChoice& choice) {
  const std::pair key{placement, choice};
  const auto found = std::find(network_keys_.begin(), network_keys_.end(), key);
  if (found != network_keys_.end())
    return *networks_[static_cast<std::size_t>(found - network_keys_.begin())];
  network_keys_.push_back(key);
  networks_.push_back(std::make_unique<StepNetwork>(placement, choice, families_));
  return *networks_.back();
}

StepPlan StepPredictor::plan(const Scenario& scenario, const Workload& workload,
                             std::size_t microbatches) {
  ASSERT(scenario.parameter_server.servers == 0);  // predict_servers() is for those
  Problems problems;
  for (const KeyProblem& problem : scenario_problems(scenario, workload, topology_))
    problems.push_back({{}, problem.message});
  throw_if_any(std::move(problems));
  StepPlan plan = plan_step(scenario, workload, topology_.rank_count(), accelerator_of(topology_),
                            cost_, microbatches);
  StepNetwork& network = this->network(plan.placement, scenario.collectives);
  return complete_plan(std::move(plan), network);
}

StepProgram StepPredictor::lowered(const StepPlan& plan, const LowerOptions& options) {
  return lower_step(plan, network(plan.placement, plan.scenario.collectives), cost_, options);
}

StepPredictor::Run StepPredictor::simulate(const StepPlan& plan, const LowerOptions& options) {
  Run run;
  run.step = lowered(plan, options);
  run.timeline = engine_.run(run.step.program);
  return run;
}

// A jitter of the network is drawn for exchanges as a whole.
bool StepPredictor::shows_transfers(const StepPlan& plan) {
  if (crowds_ == Crowds::by_flows || !is_small(plan)) return false;
  if (plan.scenario.imperfection.network_jitter > 0) return false;
  return lowered(plan, {.grain = Grain::blocks}).needs_transfers;
}

StepPredictor::Run StepPredictor::simulate_transfers(const StepPlan& plan,
                                                     const LowerOptions& options) {
  Run run;
  run.step = lowered(plan, options);
  const auto whole = expand_step(lowered(plan, expandable), routing_, most_transfers);
  run.timeline = whole ? seen_from(run.step, *whole, engine_.run(whole->expanded.program))
                       : engine_.run(run.step.program);
  return run;
}

Prediction StepPredictor::tell(const Run& run, const Accounts& accounts,
                               const StepPlan& plan) const {
  Prediction told;
  const Training& training = plan.scenario.training;
  told.step = run.timeline.makespan;
  told.world = plan.placement.world();
  told.tensor = plan.placement.size(Dimension::tensor);
  told.pipeline = plan.placement.size(Dimension::pipeline);
  told.context = plan.placement.size(Dimension::context);
  told.expert = plan.placement.size(Dimension::expert);
  told.data = plan.placement.size(Dimension::data);
  told.microbatches = plan.batch.microbatches;
  told.parameters = plan.parameters;
  told.samples = static_cast<double>(plan.batch.global);
  told.tokens = told.samples * static_cast<double>(plan.seq_length);
  told.model_flops = plan.model_flops;
  told.peak = peak_of(accelerator_of(topology_), training.precision);
  told.band = frameworks()[training.framework].band;
  told.is_drawn = Imperfections(plan.scenario.imperfection, told.world).is_drawn();
  for (std::size_t r = 0; r < run.step.roles.size(); ++r)
    told.roles.push_back(
        report_on(accounts, run.timeline, run.step.roles[r], r, accelerator_of(topology_)));
  told.fits = std::all_of(told.roles.begin(), told.roles.end(), [](const RoleReport& role) {
    return role.capacity == Bytes{0} || role.peak_bytes <= role.capacity;
  });
  if (const std::size_t steps = simulated_steps(plan.scenario); steps > 1)
    average_steps(told, steps);
  average_roles(told);
  told.simulation = {"fast", run.step.program.size(), run.timeline.events};
  return told;
}

StepPredictor::Answer StepPredictor::predict(const Scenario& scenario, const Workload& workload,
                                             const Detail& detail) {
  const StepPlan what = plan(scenario, workload, detail.microbatches);
  const bool transfers = shows_transfers(what);
  const LowerOptions options{.grain = transfers ? Grain::kernels : detail.grain,
                             .fold = detail.fold,
                             .count_links = detail.count_links};
  Run run = transfers ? simulate_transfers(what, options) : simulate(what, options);
  Prediction told = tell(run, Accounts(run.step, run.timeline), what);
  return {std::move(told), std::move(run.step), std::move(run.timeline)};
}

StepProgram StepPredictor::lowered_to(Pass last, const Scenario& scenario,
                                      const Workload& workload) {
  return lowered(plan(scenario, workload, 0), {.last = last});
}

StepProgram StepPredictor::whole_program(const Scenario& scenario, const Workload& workload) {
  refuse_network_jitter(scenario);
  return lowered(plan(scenario, workload, 0), expandable);
}

std::optional<WholeStep> StepPredictor::every_transfer(const Scenario& scenario,
                                                       const Workload& workload,
                                                       std::size_t most_ops) {
  return expand_step(whole_program(scenario, workload), routing_, most_ops);
}

// The rounds left out are like the last one that was simulated.
Prediction StepPredictor::extrapolate(const Run& run, const SteadyState& steady,
                                      const StepPlan& plan, std::size_t microbatches) const {
  const auto left_out =
      static_cast<std::int64_t>((microbatches - plan.schedule.microbatches) / steady.advance);
  const Accounts accounts(run.step, run.timeline);
  Prediction prediction = tell(run, accounts, plan);
  prediction.step += left_out * steady.period;
  for (std::size_t r = 0; r < prediction.roles.size(); ++r) {
    const Role& role = run.step.roles[r];
    const ActionOps& last =
        run.step.actions[role.pipeline_rank][steady.rounds[role.pipeline_rank].end - 1];
    const Time end = run.timeline.spans[index(last.begin)].begin;
    const TimeWindow round{end - steady.period, end};
    RoleReport& report = prediction.roles[r];
    report.time = sum(report.time, accounts.time_use(r, round), left_out);
    const auto more = accounts.communication(r, round);
    for (std::size_t d = 0; d < dimension_count; ++d) report.communication[d] += left_out * more[d];
  }
  average_roles(prediction);
  return prediction;
}

// The slowest stage's pace spreads to the others as they use up their slack; where some have not
// got it yet, more rounds are tried, as many as it seems to take.
Prediction StepPredictor::quick(const Scenario& scenario, const Workload& workload, Update update) {
  if (scenario.parameter_server.servers > 0)
    return predict_servers(scenario, workload, topology_, cost_, true).prediction;
  const Parallelism& how = scenario.parallelism;
  // Steps of local SGD are not alike, and a file has its own number of micro-batches.
  const bool in_full = !how.schedule_csv.empty() || scenario.local_sgd.interval > 0;
  // As few as every schedule takes: rounds of all ranks, and two of them for one in a V.
  StepPlan what = plan(scenario, workload, in_full ? 0 : 2 * how.pipeline);
  what.update = update;
  const std::size_t all = what.batch.microbatches;
  if (shows_transfers(what)) {
    if (!in_full) what.schedule = schedule_for(how, all);
    const Run run = simulate_transfers(what, {});
    return tell(run, Accounts(run.step, run.timeline), what);
  }
  const std::uint32_t round = microbatches_of_round(what.schedule);
  const auto from = [&](std::size_t few) {
    while (few < all && !schedule_takes(how, few)) few += round;
    return few;
  };
  // Warm-up, what it takes to settle, some rounds to compare, and the way out; or as many as the
  // last one like it took.
  const std::size_t ranks = what.schedule.ranks.size();
  std::size_t& known = settled_at_[{how.schedule, how.pipeline, how.sequence_parallel}];
  std::size_t few = round > 1 ? 6 * round + all % round : 2 * how.pipeline + 6;
  if (known > few) few = known / ranks * ranks + all % ranks;  // whole rounds of all ranks less
  if (known > 0 && known < few) few = known;
  const bool repeats = !Imperfections(scenario.imperfection, what.placement.world()).is_drawn();
  for (few = from(few); 4 * few < 3 * all && !in_full && repeats; few = from(few)) {
    what.schedule = schedule_for(how, few);
    const Run run = simulate(what, {.grain = Grain::blocks});
    const Settling settling = find_steady_state(run.step, run.timeline, round);
    if (settling.state && (all - few) % settling.state->advance == 0) {
      // Where one round is like the next, the next step like this one needs no spare rounds.
      const bool every_round = settling.state->advance == 1;
      known = every_round ? few - std::min<std::size_t>(few / 2, settling.spare_rounds) : few;
      return extrapolate(run, *settling.state, what, all);
    }
    const std::size_t times = ranks / std::max<std::size_t>(settling.settled_ranks, 1) + 1;
    known = few = few * times / ranks * ranks + all % ranks;
  }
  if (!in_full) what.schedule = schedule_for(how, all);
  const Run run = simulate(what, {.grain = Grain::blocks});
  return tell(run, Accounts(run.step, run.timeline), what);
}

}  // namespace rehearse
