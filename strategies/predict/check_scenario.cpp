// The checks in the order of the file's tables; each looks at what the ones before it left whole.
#include "strategies/predict/check_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "strategies/layers/tensor_parallel.hpp"
#include "strategies/methods/local_sgd.hpp"
#include "strategies/placement/placement.hpp"
#include "strategies/predict/method_problems.hpp"
#include "strategies/schedules/schedule_csv.hpp"
#include "strategies/schedules/schedules.hpp"
#include "strategies/servers/server_plan.hpp"

namespace rehearse {

namespace {

using KeyProblems = std::vector<KeyProblem>;

void add(KeyProblems& all, KeyProblems more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

// One of `names`, or "auto".
void check_word(const char* key, const std::string& word, std::string_view what,
                std::vector<std::string> names, KeyProblems& problems) {
  names.insert(names.begin(), "auto");
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  std::string hint = did_you_mean(word, names);
  if (hint.empty()) hint = fmt::format("; one of {}", fmt::join(names, ", "));
  problems.push_back({{key}, fmt::format("unknown {} '{}'{}", what, word, hint)});
}

KeyProblems collective_problems(const CollectiveChoice& choice, const Topology& topology) {
  KeyProblems problems;
  std::vector<std::string> names, protocols;
  for (const Algorithm& known : algorithms()) names.emplace_back(known.name);
  for (const Protocol& protocol : topology.protocols) protocols.push_back(protocol.name);
  const std::pair<const char*, const std::string&> choices[] = {
      {"all_reduce", choice.all_reduce},
      {"all_gather", choice.all_gather},
      {"reduce_scatter", choice.reduce_scatter},
      {"broadcast", choice.broadcast},
      {"all_to_all", choice.all_to_all}};
  for (const auto& [key, word] : choices) check_word(key, word, "algorithm", names, problems);
  check_word("protocol", choice.protocol, "protocol of this machine", protocols, problems);
  return problems;
}

// A time to a target is one of a training with a length.
KeyProblems length_problems(const Training& t) {
  if (t.gradient_noise_scale == 0 || t.tokens > 0 || t.epochs > 0) return {};
  return {{{"gradient_noise_scale"},
           fmt::format("gradient_noise_scale tells how long the training takes to its target, but "
                       "not how long it is; give {}",
                       "tokens or epochs")}};
}

// What the micro-batches must be to the stages.
KeyProblems schedule_problems(const Parallelism& p, const Batch& batch) {
  if (!p.schedule_csv.empty()) return {};
  const ScheduleKind& kind = schedule_kind(p.schedule);
  const PipelineShape shape{.ranks = p.pipeline,
                            .microbatches = batch.microbatches,
                            .chunks = stage_count(p) / p.pipeline};
  const std::optional<std::string> reason = refusal(kind, shape);
  if (!reason) return {};
  return {{{"schedule", "global_batch_size"}, fmt::format("schedule {}: {}", kind.name, *reason)}};
}

// Blocks are alike and go evenly over the stages. Other layers are dealt out by their work, so any
// number will do that gives each stage one, unless the scenario says how many each gets.
std::size_t layers_to_deal(const Workload& workload, const Parallelism& p) {
  const std::size_t layers = split_numbers(workload, 1).layers, stages = stage_count(p);
  const bool by_work = workload.sample != SampleKind::sequence && p.layers_per_stage.empty();
  return by_work && layers >= stages ? stages : layers;
}

// Experts have other replicas than the rest, and ZeRO cuts them over all of those.
KeyProblems expert_problems(const Parallelism& p) {
  KeyProblems problems;
  if (p.expert > 1 && p.zero_stage == 3)
    problems.push_back({{"zero_stage", "expert_model_parallel_size"},
                        fmt::format("ep {} with zero_stage 3: experts are gathered by nobody but "
                                    "their own ranks; use zero_stage 0, 1 or 2",
                                    p.expert)});
  if (p.expert > 1 && p.zero_shard_ranks > 0)
    problems.push_back({{"zero_shard_ranks", "expert_model_parallel_size"},
                        fmt::format("zero_shard_ranks {} with ep {}: experts have other replicas "
                                    "than the rest; leave zero_shard_ranks out",
                                    p.zero_shard_ranks, p.expert)});
  return problems;
}

// Layers over stages, and everything that is cut inside a layer.
KeyProblems cutting_problems(const Workload& workload, const Parallelism& p, const Training& t) {
  if (std::min({p.tensor, p.context, p.pipeline, p.virtual_pipeline, t.micro_batch_size}) == 0)
    return {};  // other checks complain of these
  const auto whole = [](std::size_t number) { return static_cast<std::int64_t>(number); };
  const bool has_length = t.seq_length > 0 && workload.sample == SampleKind::sequence;
  const Sharding how{.micro_batch = whole(t.micro_batch_size),
                     .seq_length = has_length ? whole(t.seq_length) : workload.seq_length,
                     .tensor = whole(p.tensor),
                     .context = whole(p.context),
                     .expert = whole(p.expert),
                     .sequence_parallel = p.sequence_parallel && p.tensor > 1,
                     .ring_attention = p.context_exchange == ContextExchange::ring && p.context > 1,
                     .expert_capacity = p.expert_capacity,
                     .expert_imbalance = p.expert_imbalance,
                     .flash_attention = t.flash_attention};
  const std::size_t layers = layers_to_deal(workload, p);
  KeyProblems problems = model_problems({.pipeline = p.pipeline,
                                         .virtual_pipeline = p.virtual_pipeline,
                                         .schedule = p.schedule,
                                         .schedule_csv = p.schedule_csv,
                                         .layers_per_stage = p.layers_per_stage},
                                        {.layers = layers});
  add(problems, sharding_problems(workload, how));
  return problems;
}

}  // namespace

std::vector<KeyProblem> scenario_problems(const Scenario& scenario, const Workload& workload,
                                          const Topology& topology) {
  const Parallelism& p = scenario.parallelism;
  const Training& t = scenario.training;
  if (scenario.parameter_server != ParameterServer{}) {
    KeyProblems problems = server_problems(scenario, workload, topology);
    add(problems, length_problems(t));
    if (problems.empty()) add(problems, cutting_problems(workload, p, t));
    add(problems, precision_problems(t));
    add(problems, imperfection_problems(scenario.imperfection, topology.rank_count()));
    return problems;
  }
  KeyProblems problems = placement_problems(p, topology.rank_count());
  add(problems, expert_problems(p));
  add(problems, cutting_problems(workload, p, t));
  if (problems.empty()) add(problems, local_problems(scenario, topology.rank_count()));
  if (problems.empty()) {
    const Placement placement{p, topology.rank_count()};
    const std::size_t data = placement.size(Dimension::data);
    add(problems, batch_problems(t, data));
    if (problems.empty()) add(problems, schedule_problems(p, batch_of(t, data)));
    add(problems, compression_problems(scenario, placement));
  }
  add(problems, precision_problems(t));
  add(problems, imperfection_problems(scenario.imperfection, topology.rank_count()));
  add(problems, length_problems(t));
  add(problems, collective_problems(scenario.collectives, topology));
  return problems;
}

namespace {

// A schedule from a file has its own ranks, stages and micro-batches; its own mistakes are told
// where they stand in it.
Problems csv_problems(const LoadedScenario& loaded) {
  const Parallelism& p = loaded.scenario.parallelism;
  if (p.schedule_csv.empty()) return {};
  KeyProblems problems;
  const auto expect = [&](std::size_t found, std::size_t wanted, std::string_view what,
                          std::string arithmetic) {
    if (found != wanted)
      problems.push_back({{"schedule_csv"},
                          fmt::format("schedule_csv has {} {}, but {}", found, what, arithmetic)});
  };
  try {
    const Schedule schedule = read_schedule_csv(p.schedule_csv);
    const Training& t = loaded.scenario.training;
    const std::size_t world = loaded.topology.rank_count();
    const std::size_t data = Placement{p, world}.size(Dimension::data);
    const Batch batch = batch_of(t, data);
    expect(schedule.ranks.size(), p.pipeline, "ranks", fmt::format("pp is {}", p.pipeline));
    expect(schedule.stages, stage_count(p), "stages",
           fmt::format("pp {} × vpp {} = {}", p.pipeline, p.virtual_pipeline, stage_count(p)));
    expect(schedule.microbatches, batch.microbatches, "micro-batches",
           fmt::format("gbs {} / (mbs {} × dp {}) = {}", batch.global, t.micro_batch_size, data,
                       batch.microbatches));
  } catch (const InputError& error) {
    return {error.problems().begin(), error.problems().end()};
  }
  return loaded.placed(problems);
}

}  // namespace

void check_scenario(const LoadedScenario& loaded) {
  throw_if_any(loaded.placed(scenario_problems(loaded.scenario, loaded.workload, loaded.topology)));
  throw_if_any(csv_problems(loaded));
}

}  // namespace rehearse
