// `rehearse run SCENARIO --backend host|cuda`: the scenario's step executed here, by threads, by
// the processes of mpirun, or on GPUs, in real time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/error.hpp"
#include "sim/explain.hpp"
#include "sim/shaped_roofline.hpp"
#include "strategies/check_scenario.hpp"
#include "strategies/local_sgd.hpp"
#include "tools/calibrated.hpp"
#include "tools/commands.hpp"
#include "tools/counts.hpp"
#include "tools/cuda_backend.hpp"
#include "tools/host_step.hpp"
#include "tools/interrupt.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"
#include "tools/trace_slices.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string scenario, backend, compute = "real", json, trace;
  std::string library = "own", algorithm, protocol;  // of collectives on GPUs
  std::vector<std::string> sets;
  std::int64_t steps = 5;
  bool quiet = false;
};

HostCompute compute_of(const Options& options) {
  const bool on_gpus = options.backend == "cuda";
  if (options.library != "own" && options.library != "nccl")
    throw InputError(fmt::format("--library {} is neither 'own' nor 'nccl'", options.library));
  if (!on_gpus && options.library == "nccl")
    throw InputError("--library nccl is for --backend cuda");
  if (options.library != "nccl" && !(options.algorithm + options.protocol).empty())
    throw InputError("--algorithm and --protocol are for --library nccl");
  if (on_gpus && options.compute != "real")
    throw InputError("--backend cuda computes for real: leave --compute out");
  if (on_gpus) need_cuda();
  if (options.backend != "host" && !on_gpus)
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

/// Where the median step goes, the mean over ranks.
struct Use {
  double compute = 0, exposed = 0, idle = 0;  // seconds
};

Use mean_use(const Told& told) {
  const Timeline timeline = told_of_whole(told.step, told.done.timelines[told.done.median]);
  // Every moment of a rank at which something begins or ends: how many compute, how many talk.
  struct Change {
    int computing = 0, communicating = 0;
  };
  std::map<std::size_t, std::map<Time, Change>> ranks;
  for (const TraceSlice& slice : slices_of(told.step, timeline)) {
    int Change::*const what = slice.communicates ? &Change::communicating : &Change::computing;
    ++(ranks[slice.rank][slice.begin].*what);
    --(ranks[slice.rank][slice.end].*what);
  }
  Use sum;
  for (auto& [rank, changes] : ranks) {
    changes[Time{}];
    changes[timeline.makespan];
    Change now;
    Time since;
    for (const auto& [time, change] : changes) {
      const double length = (time - since).seconds().count();
      (now.computing > 0 ? sum.compute : now.communicating > 0 ? sum.exposed : sum.idle) += length;
      now.computing += change.computing;
      now.communicating += change.communicating;
      since = time;
    }
  }
  const auto count = static_cast<double>(std::max<std::size_t>(ranks.size(), 1));
  return {sum.compute / count, sum.exposed / count, sum.idle / count};
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
  const Use use = mean_use(told);
  const double all = told.done.step().seconds().count();
  const auto part = [&](std::string_view name, double seconds) {
    fmt::print("  {:<24} {:>10}  {:5.1f} %\n", name, readable(Time::round(Seconds{seconds})),
               100 * seconds / all);
  };
  part(told.options.compute == "paced" ? "compute (paced)" : "compute", use.compute);
  part("exposed communication", use.exposed);
  part("idle", use.idle);
}

nlohmann::ordered_json json(const Told& told) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < told.done.timelines.size(); ++i) {
    const Time time = told.done.timelines[i].makespan;
    steps.push_back(
        {{"time_ms", time.seconds().count() * 1e3 / static_cast<double>(told.steps_each)}});
    if (!told.done.losses.empty()) steps.back()["loss"] = told.done.losses[i];
  }
  const Use use = mean_use(told);
  return {{"title", told.loaded.scenario.title},
          {"backend", told.options.backend},
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
           {{"compute_ms", use.compute * 1e3},
            {"exposed_ms", use.exposed * 1e3},
            {"idle_ms", use.idle * 1e3}}}};
}

// Collectives as one op each, which the library runs.
void keep_whole(HostStep& step) {
  step.program = step.whole.program;
  step.origin.resize(step.program.size());
  for (std::size_t i = 0; i < step.origin.size(); ++i) step.origin[i] = static_cast<OpId>(i);
}

// What the command line does not say, the scenario may.
CudaRunOptions cuda_options(const Options& options, const CollectiveChoice& choice,
                            std::size_t steps) {
  CudaRunOptions result{
      .algorithm = options.algorithm, .protocol = options.protocol, .steps = steps};
  if (options.library != "nccl") return result;
  if (result.algorithm.empty() && choice.all_reduce != "auto") result.algorithm = choice.all_reduce;
  if (result.protocol.empty() && choice.protocol != "auto") result.protocol = choice.protocol;
  return result;
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
  if (options.backend == "cuda" && ranks.are_processes())
    throw InputError("--backend cuda runs in one process with all GPUs: leave mpirun out");
  const ShapedRoofline cost;
  StepPredictor predictor(loaded.topology, cost);
  Routing routing{loaded.topology};
  HostStep step = host_step(loaded, predictor, routing, compute);
  if (options.library == "nccl") keep_whole(step);
  Progress progress(options.quiet || !ranks.is_first());
  progress.show("running");
  const auto stop = [&] { return interrupt.was_interrupted(); };
  const bool on_gpus = options.backend == "cuda";
  const HostSteps done =
      on_gpus ? need_cuda().run_steps(step, loaded,
                                      cuda_options(options, loaded.scenario.collectives, steps))
              : run_steps(step, loaded, ranks, {.compute = compute, .steps = steps, .stop = stop});
  progress.show("");
  if (!ranks.is_first()) return;
  const Told told{.loaded = loaded,
                  .options = options,
                  .step = step,
                  .done = done,
                  .where = on_gpus ? need_cuda().describe(loaded.topology.rank_count())
                                   : ranks.describe(loaded.topology.rank_count()),
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
  command->add_option("--backend", options->backend, "host, or cuda: the GPUs of this machine")
      ->required();
  command->add_option("--compute", options->compute,
                      "real; or paced: computes wait for their modelled time");
  command->add_option("--library", options->library,
                      "Collectives on GPUs: own (our schedules) or nccl");
  command->add_option("--algorithm", options->algorithm, "NCCL's: ring, tree, nvls, ...");
  command->add_option("--protocol", options->protocol, "NCCL's: LL, LL128, Simple");
  command->add_option("--steps", options->steps, "How many are timed (5), after one to warm up");
  command->add_option("--json", options->json, "Write everything as JSON; - is standard output");
  command->add_option("--trace", options->trace, "Write the median step as a trace for Perfetto");
  command->add_flag("--quiet", options->quiet, "No progress line");
  command->callback([options] { run(*options); });
}

}  // namespace rehearse
