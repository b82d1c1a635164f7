// The steps of a prediction with parameter servers.
#include "strategies/predict/server_run.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/layers/optimizer.hpp"
#include "strategies/layers/tensor_parallel.hpp"
#include "strategies/predict/check_scenario.hpp"

namespace rehearse {

namespace {

void set(MemoryUse& use, MemoryKind kind, Bytes bytes) {
  use[static_cast<std::size_t>(kind)] += bytes;
}

void add_up(RoleReport& role) {
  for (const Bytes bytes : role.peak) role.peak_bytes += bytes;
}

// A worker holds parameters, gradients and what the backward pass needs of one micro-batch.
RoleReport worker_role(const ServerPlan& plan, const Scenario& scenario, const Workload& workload,
                       const Topology& topology) {
  const StateFormat format = state_format(scenario.training);
  RoleReport role{.name = "worker",
                  .ranks = static_cast<std::uint32_t>(plan.workers.size()),
                  .rank = plan.workers.front()};
  set(role.peak, MemoryKind::parameters, plan.parameters * format.parameter);
  set(role.peak, MemoryKind::gradients, plan.parameters * format.gradient);
  const PieceTable pieces(workload, sharding_of(workload, scenario.parallelism, scenario.training));
  // Recomputation keeps the layers' inputs, and has one layer's activations at a time.
  const Recompute recompute = scenario.parallelism.recompute;
  Activations kept{}, working{};
  for (std::size_t l = 0; l < pieces.size(); ++l) {
    const bool again = recompute == Recompute::full && pieces[l].recomputes;
    const Activations& all =
        recompute == Recompute::selective ? pieces[l].kept_selective : pieces[l].kept;
    for (std::size_t k = 0; k < activation_kinds; ++k)
      again ? working[k] = std::max(working[k], all[k]) : kept[k] += all[k];
    if (again) kept[static_cast<std::size_t>(ActivationKind::input)] += pieces[l].input;
  }
  for (std::size_t k = 0; k < activation_kinds; ++k)
    role.peak[static_cast<std::size_t>(MemoryKind::input) + k] = kept[k] + working[k];
  role.capacity = accelerator_of(topology, role.rank).memory;
  add_up(role);
  return role;
}

// A server holds its part with the optimizer's state, and a box for each worker in and out.
RoleReport server_role(const ServerPlan& plan, const Scenario& scenario, const Topology& topology) {
  const StateFormat format = state_format(scenario.training);
  std::size_t fullest = 0;
  std::int64_t most = 0;
  for (std::size_t s = 0; s < plan.servers.size(); ++s) {
    std::int64_t held = 0;
    for (const ServerBucket& bucket : plan.buckets) held += bucket.parts[s].parameters;
    if (held > most) most = held, fullest = s;
  }
  RoleReport role{.name = "server",
                  .ranks = static_cast<std::uint32_t>(plan.servers.size()),
                  .rank = plan.servers[fullest]};
  const bool waits = plan.how.mode == ServerMode::synchronous;
  set(role.peak, MemoryKind::parameters, most * format.parameter);
  set(role.peak, MemoryKind::gradients, waits ? most * format.gradient : Bytes{});
  set(role.peak, MemoryKind::optimizer, most * format.state);
  for (const ServerBucket& bucket : plan.buckets) {
    const ServerPart& part = bucket.parts[fullest];
    set(role.peak, MemoryKind::buffers,
        static_cast<std::int64_t>(plan.workers.size()) *
            (part.pushed + (waits ? Bytes{} : part.pulled)));
  }
  role.capacity = accelerator_of(topology, role.rank).memory;
  add_up(role);
  return role;
}

Prediction prediction_of(const ServerAnswer& answer, const Scenario& scenario,
                         const Workload& workload, const Topology& topology) {
  const ServerPlan& plan = answer.plan;
  const auto workers = static_cast<double>(plan.workers.size());
  Prediction told;
  told.world = topology.rank_count();
  told.data = plan.workers.size();
  told.microbatches = plan.microbatches;
  told.parameters = plan.parameters;
  told.samples = workers * plan.samples;
  told.tokens = workers * plan.tokens;
  told.model_flops = workers * plan.model_flops;
  told.step = Time::round(Seconds{told.samples / answer.report.samples_per_second});
  told.peak = peak_of(accelerator_of(topology, plan.workers.front()), scenario.training.precision);
  told.mean.compute = Time::round(answer.report.computing * told.step.seconds());
  told.mean.exposed[static_cast<std::size_t>(Dimension::data)] = told.step - told.mean.compute;
  told.roles = {worker_role(plan, scenario, workload, topology),
                server_role(plan, scenario, topology)};
  if (plan.how.placement == ServerPlacement::colocated)
    for (std::size_t k = 0; k < memory_kinds; ++k) {
      told.roles[1].peak[k] += told.roles[0].peak[k];
      told.roles[1].peak_bytes += told.roles[0].peak[k];
    }
  for (RoleReport& role : told.roles) role.time = told.mean;
  told.fits = std::all_of(told.roles.begin(), told.roles.end(), [](const RoleReport& role) {
    return role.capacity == Bytes{0} || role.peak_bytes <= role.capacity;
  });
  told.simulation = {"fast", answer.lowered.program.size(), answer.timeline.events};
  return told;
}

}  // namespace

ServerAnswer predict_servers(const Scenario& scenario, const Workload& workload,
                             const Topology& topology, const CostModel& cost, bool fold) {
  Problems problems;
  for (const KeyProblem& problem : scenario_problems(scenario, workload, topology))
    problems.push_back({{}, problem.message});
  throw_if_any(std::move(problems));
  ServerAnswer answer;
  answer.plan = plan_servers(scenario, workload, topology, cost);
  Routing routing{topology};
  answer.lowered = lower_servers(answer.plan, routing, fold);
  answer.timeline = FastSimulator(routing, cost).run(answer.lowered.program);
  answer.report = report_servers(answer.plan, answer.lowered, answer.timeline);
  answer.prediction = prediction_of(answer, scenario, workload, topology);
  return answer;
}

}  // namespace rehearse
