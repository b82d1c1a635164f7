// One table of quantities: a name, and how a run tells it.
#include "tools/teach/teach_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "strategies/predict/server_run.hpp"
#include "strategies/predict/step_average.hpp"
#include "strategies/predict/step_times.hpp"
#include "tools/teach/teach_network.hpp"

namespace rehearse {

namespace {

constexpr Dimensions second{.seconds = 1}, byte{.bytes = 1}, plain{};
constexpr Dimensions per_second{.seconds = -1};

Amount seconds(Time time) { return {time.seconds().count(), second}; }
Amount bytes(Bytes size) { return {static_cast<double>(size.count()), byte}; }
Amount count(double number) { return {number, plain}; }
Amount count(std::size_t number) { return {static_cast<double>(number), plain}; }

Amount exposed(const LessonRun& run) {
  Time sum;
  for (const Time time : run.told.mean.exposed) sum += time;
  return seconds(sum);
}

template <Dimension dimension>
Amount exposed_in(const LessonRun& run) {
  return seconds(run.told.mean.exposed[static_cast<std::size_t>(dimension)]);
}

template <Dimension dimension>
Amount communication_in(const LessonRun& run) {
  return seconds(run.told.roles.front().communication[static_cast<std::size_t>(dimension)]);
}

const RoleReport& fullest(const LessonRun& run) {
  return *std::max_element(
      run.told.roles.begin(), run.told.roles.end(),
      [](const RoleReport& a, const RoleReport& b) { return a.peak_bytes < b.peak_bytes; });
}

template <MemoryKind kind>
Amount memory_of(const LessonRun& run) {
  return bytes(fullest(run).peak[static_cast<std::size_t>(kind)]);
}

Amount activations_of(const RoleReport& role) {
  Bytes sum;
  for (const MemoryKind kind : {MemoryKind::input, MemoryKind::attention, MemoryKind::mlp,
                                MemoryKind::norm, MemoryKind::loss})
    sum += role.peak[static_cast<std::size_t>(kind)];
  return bytes(sum);
}

const TrainingCost& cost_of(const LessonRun& run) {
  if (!run.cost) throw InputError("the scenario does not say how long the training is");
  return *run.cost;
}

const TimeToTarget& target_of(const LessonRun& run) {
  if (!cost_of(run).target) throw InputError("the scenario has no gradient_noise_scale");
  return *cost_of(run).target;
}

const ServerReport& servers_of(const LessonRun& run) {
  if (!run.servers) throw InputError("the scenario has no parameter servers");
  return *run.servers;
}

Amount mean_of_seeds(const LessonRun& run) {
  const ShapedRoofline cost;
  return seconds(
      step_times(run.loaded.scenario, run.loaded.workload, run.loaded.topology, cost, 1).mean());
}

/// All-reduces of a step that rank 0 takes part in.
Amount reductions(const LessonRun& run) {
  const ShapedRoofline cost;
  StepPredictor predictor(run.loaded.topology, cost);
  const StepProgram step = predictor.whole_program(run.loaded.scenario, run.loaded.workload);
  std::size_t sum = 0;
  for (const Program::Op& op : step.program.ops()) {
    if (op.kind != WorkKind::collective) continue;
    const Collective& collective = step.program.collective(op);
    sum += collective.kind == CollectiveKind::all_reduce && collective.group.front() == Rank{0};
  }
  return count(sum);
}

struct Measured {
  std::string_view name;
  Amount (*of)(const LessonRun&);
};
using Run = const LessonRun&;

constexpr Measured measured[] = {
    {"step_time", [](Run r) { return seconds(r.told.step); }},
    {"average_step_time", [](Run r) { return seconds(r.average); }},
    {"mean_step_time", mean_of_seeds},
    {"compute_time", [](Run r) { return seconds(r.told.mean.compute); }},
    {"bubble_time", [](Run r) { return seconds(r.told.mean.bubble); }},
    {"last_bubble_time", [](Run r) { return seconds(r.told.roles.back().time.bubble); }},
    {"exposed_time", exposed},
    {"exposed_data_time", exposed_in<Dimension::data>},
    {"exposed_tensor_time", exposed_in<Dimension::tensor>},
    {"exposed_pipeline_time", exposed_in<Dimension::pipeline>},
    {"exposed_context_time", exposed_in<Dimension::context>},
    {"data_communication_time", communication_in<Dimension::data>},
    {"tensor_communication_time", communication_in<Dimension::tensor>},
    {"bubble_fraction", [](Run r) { return count(r.told.bubble_fraction()); }},
    {"mfu", [](Run r) { return count(r.told.mfu()); }},
    {"ranks", [](Run r) { return count(r.told.world); }},
    {"tensor", [](Run r) { return count(r.told.tensor); }},
    {"pipeline", [](Run r) { return count(r.told.pipeline); }},
    {"data", [](Run r) { return count(r.told.data); }},
    {"context", [](Run r) { return count(r.told.context); }},
    {"microbatches", [](Run r) { return count(r.told.microbatches); }},
    {"chunks", [](Run r) { return count(r.loaded.scenario.parallelism.virtual_pipeline); }},
    {"roles", [](Run r) { return count(r.told.roles.size()); }},
    {"parameters", [](Run r) { return count(static_cast<double>(r.told.parameters)); }},
    {"samples", [](Run r) { return count(r.told.samples); }},
    {"tokens", [](Run r) { return count(r.told.tokens); }},
    {"samples_per_second",
     [](Run r) {
       return Amount{r.told.samples_per_second(), per_second};
     }},
    {"tokens_per_second",
     [](Run r) {
       return Amount{r.told.tokens_per_second(), per_second};
     }},
    {"model_flops",
     [](Run r) {
       return Amount{r.told.model_flops.count(), {.flops = 1}};
     }},
    {"peak_flops",
     [](Run r) {
       return Amount{r.told.peak.count(), {-1, 0, 1}};
     }},
    {"flops_per_gpu",
     [](Run r) {
       return Amount{r.told.model_flops_per_gpu().count(), {-1, 0, 1}};
     }},
    {"peak_memory", [](Run r) { return bytes(fullest(r).peak_bytes); }},
    {"capacity", [](Run r) { return bytes(fullest(r).capacity); }},
    {"parameter_memory", memory_of<MemoryKind::parameters>},
    {"gradient_memory", memory_of<MemoryKind::gradients>},
    {"optimizer_memory", memory_of<MemoryKind::optimizer>},
    {"buffer_memory", memory_of<MemoryKind::buffers>},
    {"activation_memory", [](Run r) { return activations_of(fullest(r)); }},
    {"first_activation_memory", [](Run r) { return activations_of(r.told.roles.front()); }},
    {"training_time",
     [](Run r) {
       return Amount{cost_of(r).days * 86400, second};
     }},
    {"training_steps", [](Run r) { return count(cost_of(r).steps); }},
    {"training_flops",
     [](Run r) {
       return Amount{cost_of(r).law.work, {.flops = 1}};
     }},
    {"kernel_efficiency", [](Run r) { return count(cost_of(r).law.kernel_efficiency); }},
    {"parallel_efficiency", [](Run r) { return count(cost_of(r).law.parallel_efficiency); }},
    {"data_efficiency", [](Run r) { return count(target_of(r).data_efficiency); }},
    {"time_to_target",
     [](Run r) {
       return Amount{target_of(r).days * 86400, second};
     }},
    {"noise_scale", [](Run r) { return count(target_of(r).noise_scale); }},
    {"servers", [](Run r) { return count(r.loaded.scenario.parameter_server.servers); }},
    {"server_steps", [](Run r) { return count(r.loaded.scenario.parameter_server.steps); }},
    {"reductions", reductions},
    {"updates_per_second",
     [](Run r) {
       return Amount{servers_of(r).updates_per_second, per_second};
     }},
    {"server_samples_per_second",
     [](Run r) {
       return Amount{servers_of(r).samples_per_second, per_second};
     }},
    {"server_busy", [](Run r) { return count(servers_of(r).busy); }},
    {"worker_computing", [](Run r) { return count(servers_of(r).computing); }},
    {"worker_step_time",
     [](Run r) {
       return Amount{servers_of(r).step.mean, second};
     }},
    {"mean_staleness", [](Run r) { return count(servers_of(r).staleness.mean); }},
    {"most_staleness", [](Run r) { return count(servers_of(r).staleness.most); }},
    {"local_interval", [](Run r) { return count(r.loaded.scenario.local_sgd.interval); }},
    {"loss_scale_window",
     [](Run r) { return count(r.loaded.scenario.training.loss_scale_window); }},
    {"slow_factor", [](Run r) { return count(r.loaded.scenario.imperfection.slow_rank_factor); }},
    {"gradient_sparsity", [](Run r) { return count(r.loaded.scenario.compression.sparsity); }},
};

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second_ones) {
  first.insert(first.end(), second_ones.begin(), second_ones.end());
  return first;
}

}  // namespace

StepPredictor& Predictors::on(const Topology& topology) {
  constexpr std::size_t most = 6;  // some MB each, with what they remember
  const auto known = std::find_if(latest_.begin(), latest_.end(),
                                  [&](const auto& one) { return one->topology == topology; });
  if (known != latest_.end()) {
    std::rotate(latest_.begin(), known, known + 1);
  } else {
    latest_.insert(latest_.begin(), std::make_unique<One>(topology));
    if (latest_.size() > most) latest_.pop_back();
  }
  return latest_.front()->predictor;
}

LessonRun run_lesson(std::string_view toml, const std::string& file,
                     const std::vector<std::string>& sets, Predictors& predictors) {
  LessonRun run{.loaded = ready(parse_scenario(toml, file, sets))};
  const LoadedScenario& loaded = run.loaded;
  if (loaded.scenario.parameter_server.servers > 0) {
    const ShapedRoofline cost;
    ServerAnswer answer =
        predict_servers(loaded.scenario, loaded.workload, loaded.topology, cost, true);
    run.told = std::move(answer.prediction);
    run.servers = std::move(answer.report);
    run.average = run.told.step;
  } else {
    StepPredictor& predictor = predictors.on(loaded.topology);
    run.told = predictor.quick(loaded.scenario, loaded.workload);
    const std::optional<AverageStep> average =
        average_step(loaded.scenario, loaded.workload, run.told.step, predictor);
    run.average = average ? average->step : run.told.step;
  }
  run.cost = training_cost(loaded.scenario.training, run.told, run.average);
  return run;
}

LessonRuns::LessonRuns(std::string toml, std::string file, std::vector<std::string> sets,
                       Predictors* lent)
    : toml_{std::move(toml)}, file_{std::move(file)}, sets_{std::move(sets)}, lent_{lent} {}

const LessonRun& LessonRuns::run(const std::vector<std::string>& with) {
  std::unique_ptr<LessonRun>& known = runs_[with];
  Predictors& predictors = lent_ == nullptr ? own_ : *lent_;
  if (!known)
    known = std::make_unique<LessonRun>(run_lesson(toml_, file_, joined(sets_, with), predictors));
  return *known;
}

Amount LessonRuns::measure(std::string_view quantity, const std::vector<std::string>& with) {
  if (is_network_quantity(quantity)) {
    std::vector<std::string> changes;
    const NetworkDetail detail = network_detail(with, changes);
    return measure_network(run(changes).loaded, quantity, detail);
  }
  for (const Measured& known : measured)
    if (known.name == quantity) return known.of(run(with));
  throw InputError(fmt::format("unknown quantity '{}'{}", quantity,
                               did_you_mean(quantity, lesson_quantities())));
}

std::vector<std::string> lesson_quantities() {
  std::vector<std::string> names;
  for (const Measured& one : measured) names.emplace_back(one.name);
  return names;
}

}  // namespace rehearse
