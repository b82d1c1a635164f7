// `rehearse run SCENARIO --backend host`: the scenario's step executed here, by threads or by the
// processes of mpirun, in real time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/error.hpp"
#include "sim/explain.hpp"
#include "sim/shaped_roofline.hpp"
#include "strategies/account.hpp"
#include "strategies/check_scenario.hpp"
#include "strategies/local_sgd.hpp"
#include "tools/calibrated.hpp"
#include "tools/commands.hpp"
#include "tools/counts.hpp"
#include "tools/host_step.hpp"
#include "tools/interrupt.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"
#include "tools/trace_slices.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string scenario, backend, compute = "real", json, trace;
  std::vector<std::string> sets;
  std::int64_t steps = 5;
  bool quiet = false;
};

HostCompute compute_of(const Options& options) {
  if (options.backend == "cuda")
    throw NothingToRunOn("--backend cuda: this build cannot run on GPUs");
  if (options.backend != "host")
    throw InputError(fmt::format("unknown backend '{}'; there are host and cuda", options.backend));
  if (options.compute == "paced") return HostCompute::paced;
  if (options.compute == "real") return HostCompute::calls;
  throw InputError(fmt::format("--compute {} is neither 'real' nor 'paced'", options.compute));
}

struct Told {
  const LoadedScenario& loaded;
  const Options& options;
  const HostStep& step;
  const HostSteps& done;
  std::string where;
  std::int64_t steps_each = 1;  // training steps in one run of the program

  Time step_time() const { return Time::picoseconds(done.step().ps() / steps_each); }
  std::string how() const {
    return options.compute == "paced"
               ? fmt::format(
                     "computes PACED: they wait for the modelled time of {}, nothing is "
                     "computed; communication is real",
                     device())
               : "computes real";
  }
  std::string device() const {
    const Topology& machine = loaded.topology;
    const std::size_t which = machine[machine.device_of(Rank{0})].accelerator;
    return which < machine.accelerators.size() ? machine.accelerators[which].name : "the device";
  }
};

/// Mean over ranks: computing, communicating with nothing computing, neither.
TimeUse mean_use(const Told& told) {
  const Timeline timeline = told_of_whole(told.step, told.done.timelines[told.done.median]);
  const Accounts accounts(told.step.whole, timeline);
  TimeUse sum;
  const auto roles = static_cast<std::int64_t>(told.step.whole.roles.size());
  for (std::size_t r = 0; r < told.step.whole.roles.size(); ++r) {
    const TimeUse use = accounts.time_use(r, {Time{}, timeline.makespan});
    sum.compute += use.compute;
    sum.bubble += use.bubble;
    for (std::size_t d = 0; d < dimension_count; ++d) sum.exposed[d] += use.exposed[d];
  }
  const auto mean = [&](Time& time) { time = Time::picoseconds(time.ps() / roles); };
  mean(sum.compute);
  mean(sum.bubble);
  for (Time& time : sum.exposed) mean(time);
  return sum;
}

void print(const Told& told) {
  const LoadedScenario& loaded = told.loaded;
  if (!loaded.scenario.title.empty()) fmt::print("{}\n", loaded.scenario.title);
  fmt::print("measured on {}; {}\n", told.where, told.how());
  fmt::print("calibration of the model: {}\n\n", calibration_words(loaded.scenario));
  const std::vector<double>& losses = told.done.losses;
  for (std::size_t i = 0; i < told.done.timelines.size(); ++i)
    fmt::print("step {:>3}  {:>10}{}\n", i + 1,
               readable(Time::picoseconds(told.done.timelines[i].makespan.ps() / told.steps_each)),
               losses.empty() ? "" : fmt::format("  loss {:.6f}", losses[i]));
  fmt::print("\nstep time {} (median of {}; spread {:.1f} %)\n", readable(told.step_time()),
             told.done.timelines.size(), 100 * told.done.spread);
  const TimeUse use = mean_use(told);
  const double all = told.done.step().seconds().count();
  const auto part = [&](std::string_view name, Time time) {
    if (time > Time{})
      fmt::print("  {:<24} {:>10}  {:5.1f} %\n", name, readable(time),
                 100 * time.seconds().count() / all);
  };
  part(told.options.compute == "paced" ? "compute (paced)" : "compute", use.compute);
  for (std::size_t d = 0; d < dimension_count; ++d)
    part("exposed " + std::string{to_string(static_cast<Dimension>(d))}, use.exposed[d]);
  part("bubble", use.bubble);
}

nlohmann::ordered_json json(const Told& told) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < told.done.timelines.size(); ++i) {
    const Time time = told.done.timelines[i].makespan;
    steps.push_back(
        {{"time_ms", time.seconds().count() * 1e3 / static_cast<double>(told.steps_each)}});
    if (!told.done.losses.empty()) steps.back()["loss"] = told.done.losses[i];
  }
  const TimeUse use = mean_use(told);
  nlohmann::ordered_json exposed = nlohmann::ordered_json::object();
  for (std::size_t d = 0; d < dimension_count; ++d)
    exposed[std::string{to_string(static_cast<Dimension>(d))}] =
        use.exposed[d].seconds().count() * 1e3;
  return {{"title", told.loaded.scenario.title},
          {"backend", "host"},
          {"measured", true},
          {"compute", told.options.compute},
          {"compute_words", told.how()},
          {"where", told.where},
          {"ranks", told.loaded.topology.rank_count()},
          {"ops", told.step.program.size()},
          {"step_ms", told.step_time().seconds().count() * 1e3},
          {"spread", told.done.spread},
          {"steps", steps},
          {"mean_over_ranks",
           {{"compute_ms", use.compute.seconds().count() * 1e3},
            {"exposed_ms", exposed},
            {"bubble_ms", use.bubble.seconds().count() * 1e3}}}};
}

void run(const Options& options) {
  const HostCompute compute = compute_of(options);
  const std::size_t steps = *counted("--steps", options.steps, 100'000);
  if (options.json == "-" && options.trace == "-")
    throw InputError("standard output (-) is for one of --json, --trace");
  LoadedScenario loaded = load_scenario(options.scenario, options.sets);
  check_scenario(loaded);
  loaded.topology = calibrated(loaded.scenario, std::move(loaded.topology));
  if (loaded.scenario.parameter_server.servers > 0)
    throw InputError("parameter servers cannot be run yet; predict them");
  const InterruptGuard interrupt;
  const HostRanks ranks;
  const ShapedRoofline cost;
  StepPredictor predictor(loaded.topology, cost);
  Routing routing{loaded.topology};
  const HostStep step = host_step(loaded, predictor, routing, compute);
  Progress progress(options.quiet || !ranks.is_first());
  progress.show("running");
  const HostSteps done = run_steps(
      step, loaded, ranks,
      {.compute = compute, .steps = steps, .stop = [&] { return interrupt.was_interrupted(); }});
  progress.show("");
  if (!ranks.is_first()) return;
  const Told told{.loaded = loaded,
                  .options = options,
                  .step = step,
                  .done = done,
                  .where = ranks.describe(loaded.topology.rank_count()),
                  .steps_each = static_cast<std::int64_t>(simulated_steps(loaded.scenario))};
  if (options.json != "-" && options.trace != "-") print(told);
  if (!options.json.empty()) write_output(options.json, json(told).dump(2) + "\n");
  if (options.trace.empty()) return;
  OutputFile trace(options.trace);
  const auto slices = slices_of(step, told_of_whole(step, done.timelines[done.median]));
  write_slices(trace, {{"measured", slices}});
  trace.finish();
}

}  // namespace

void add_run_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("run", "The same step for real: threads here, or processes of mpirun");
  command->add_option("SCENARIO", options->scenario, "A scenario file")->required();
  command->add_option("--set", options->sets, "Change a key: tp=4; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--backend", options->backend, "host (or cuda)")->required();
  command->add_option("--compute", options->compute,
                      "real; or paced: computes wait for their modelled time");
  command->add_option("--steps", options->steps, "How many are timed (5), after one to warm up");
  command->add_option("--json", options->json, "Write everything as JSON; - is standard output");
  command->add_option("--trace", options->trace, "Write the median step as a trace for Perfetto");
  command->add_flag("--quiet", options->quiet, "No progress line");
  command->callback([options] { run(*options); });
}

}  // namespace rehearse
