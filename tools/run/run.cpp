// `rehearse run SCENARIO --backend host|cuda`: the scenario's step executed here, by threads, by
// the processes of mpirun, or on GPUs, in real time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/engine/explain.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/binding/bind_servers.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "strategies/servers/server_report.hpp"
#include "tools/cli/calibration_option.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/measure/cuda_backend.hpp"
#include "tools/measure/host_step.hpp"
#include "tools/measure/interrupt.hpp"
#include "tools/measure/launch.hpp"
#include "tools/measure/trace_slices.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string scenario, backend, compute = "real", json, trace, checkpoint, resume, mpirun;
  std::string library = "own", algorithm, protocol;  // of collectives
  std::vector<std::string> sets;
  std::int64_t steps = 5;
  std::optional<std::int64_t> checkpoint_every, processes, seed;
  std::optional<double> learning_rate;
  bool quiet = false, graph = false, cupti = false;
};

HostCompute compute_of(const Options& options) {
  const bool on_gpus = options.backend == "cuda";
  if (options.library != "own" && options.library != "nccl" && options.library != "mpi")
    throw InputError(
        fmt::format("--library {} is none of 'own', 'mpi' and 'nccl'", options.library));
  if (!on_gpus && options.library == "nccl")
    throw InputError("--library nccl is for --backend cuda");
  if (on_gpus && options.library == "mpi") throw InputError("--library mpi is for --backend host");
  if (options.library != "nccl" && !(options.algorithm + options.protocol).empty())
    throw InputError("--algorithm and --protocol are for --library nccl");
  if (on_gpus && options.compute != "real")
    throw InputError("--backend cuda computes for real: leave --compute out");
  if (!on_gpus && (options.graph || options.cupti))
    throw InputError("--graph and --cupti are for --backend cuda");
  if (on_gpus) need_cuda();
  if (options.backend != "host" && !on_gpus)
    throw InputError(fmt::format("unknown backend '{}'; there are host and cuda", options.backend));
  if (options.compute == "paced") return HostCompute::paced;
  if (options.compute == "real") return HostCompute::calls;
  throw InputError(fmt::format("--compute {} is neither 'real' nor 'paced'", options.compute));
}

TrainingNumbers numbers_of(const Options& options, const Scenario& scenario) {
  TrainingNumbers numbers = default_numbers(scenario);
  if (const auto seed = counted("--seed", options.seed)) numbers.seed = *seed;
  numbers.learning_rate = options.learning_rate.value_or(numbers.learning_rate);
  if (!(numbers.learning_rate > 0 && numbers.learning_rate < 1e6))
    throw InputError(
        fmt::format("--learning-rate {} must be a number above 0", numbers.learning_rate));
  return numbers;
}

// A scenario whose step is a graph is run as one on GPUs.
bool is_graph(const Options& options, const Scenario& scenario) {
  return options.graph || (options.backend == "cuda" && scenario.training.cuda_graph);
}

void check_graph(const Options& options, const Scenario& scenario) {
  if (!is_graph(options, scenario)) return;
  if (scenario.parameter_server.servers > 0)
    throw InputError(
        "a CUDA graph is made before it is known who comes first: no graph with servers");
  if (options.cupti)
    throw InputError("CUPTI does not tell which op a part of a graph is: a graph, or --cupti");
}

struct Told {
  const LoadedScenario& loaded;
  const Options& options;
  const HostStep& step;
  const HostSteps& done;
  std::string where;
  std::int64_t steps_each = 1;  // training steps in one run of the program

  /// One of training; those that share a run of the program share its time.
  struct Step {
    std::uint64_t number = 0;
    Time time;
    std::optional<double> loss;
    std::optional<ScaledLoss> scaled;
  };
  std::vector<Step> steps() const {
    std::vector<Step> list;
    for (std::size_t i = 0; i < done.timelines.size() * static_cast<std::size_t>(steps_each); ++i) {
      const Time run = done.timelines[i / static_cast<std::size_t>(steps_each)].makespan;
      list.push_back({done.first + i + 1, Time::picoseconds(run.ps() / steps_each), {}});
      if (!done.losses.empty()) list.back().loss = done.losses[i];
      if (!done.scaled.empty()) list.back().scaled = done.scaled[i];
    }
    return list;
  }
  Time step_time() const { return Time::picoseconds(done.step().ps() / steps_each); }
  std::string how() const {
    return options.compute == "paced"
               ? fmt::format(
                     "computes PACED: they wait for the modelled time of {}, nothing is "
                     "computed; communication is real",
                     device())
               : std::string("computes real") +
                     (is_graph(options, loaded.scenario) ? ", each step one CUDA graph" : "");
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

// Of the median run of the program; the updates in the order in which they were really applied.
std::optional<ServerReport> server_report(const Told& told) {
  if (!told.step.servers) return {};
  return report_servers(told.step.servers->plan, told.step.servers->lowered,
                        told_of_whole(told.step, told.done.timelines[told.done.median]));
}

nlohmann::ordered_json server_json(const Told& told) {
  const ServerReport report = *server_report(told);
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const Timeline& timeline : told.done.timelines) {
    nlohmann::ordered_json order = nlohmann::ordered_json::array();
    for (const ServerProgram::Update& update :
         applied_order(told.step.servers->lowered, told_of_whole(told.step, timeline)))
      order.push_back({update.worker, update.step, update.bucket, update.server});
    runs.push_back(std::move(order));
  }
  return {{"updates_per_second", report.updates_per_second},
          {"staleness_mean", report.staleness.mean},
          {"staleness_most", report.staleness.most},
          {"applied", {"worker", "step", "bucket", "server"}},
          {"applied_in_order", std::move(runs)}};
}

std::string scale_words(const std::optional<ScaledLoss>& scaled) {
  if (!scaled) return "";
  return fmt::format("  scale {:.0f}{}", scaled->scale,
                     scaled->skipped ? "  skipped: gradients overflowed" : "");
}

void print(const Told& told) {
  const LoadedScenario& loaded = told.loaded;
  if (!loaded.scenario.title.empty()) fmt::print("{}\n", loaded.scenario.title);
  fmt::print("measured on {}; {}\n", told.where, told.how());
  fmt::print("calibration of the model: {}\n\n", calibration_words(loaded.scenario));
  for (const Told::Step& step : told.steps())
    fmt::print("step {:>3}  {:>10}{}{}\n", step.number, readable(step.time),
               step.loss ? fmt::format("  loss {:.6f}", *step.loss) : "", scale_words(step.scaled));
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
  if (const auto report = server_report(told))
    fmt::print(
        "servers: {:.1f} updates a second, {:.2f} versions behind in the mean (at most {:.0f})\n",
        report->updates_per_second, report->staleness.mean, report->staleness.most);
}

nlohmann::ordered_json json(const Told& told) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const Told::Step& step : told.steps()) {
    steps.push_back({{"number", step.number}, {"time_ms", step.time.seconds().count() * 1e3}});
    if (step.loss) steps.back()["loss"] = *step.loss;
    if (step.scaled) steps.back()["loss_scale"] = step.scaled->scale;
    if (step.scaled) steps.back()["skipped"] = step.scaled->skipped;
  }
  const Use use = mean_use(told);
  nlohmann::ordered_json all{{"title", told.loaded.scenario.title},
                             {"backend", told.options.backend},
                             {"measured", true},
                             {"compute", told.options.compute},
                             {"compute_words", told.how()},
                             {"where", told.where},
                             {"ranks", told.loaded.topology.rank_count()},
                             {"ops", told.step.program.size()},
                             {"step_ms", told.step_time().seconds().count() * 1e3},
                             {"spread", told.done.spread},
                             {"seed", told.step.numbers.seed},
                             {"learning_rate", told.step.numbers.learning_rate},
                             {"steps", steps},
                             {"mean_over_ranks",
                              {{"compute_ms", use.compute * 1e3},
                               {"exposed_ms", use.exposed * 1e3},
                               {"idle_ms", use.idle * 1e3}}}};
  if (told.step.servers) all["servers"] = server_json(told);
  return all;
}

// Collectives as one op each, which the library runs.
void keep_whole(HostStep& step) {
  step.program = step.whole.program;
  step.origin.resize(step.program.size());
  for (std::size_t i = 0; i < step.origin.size(); ++i) step.origin[i] = static_cast<OpId>(i);
}

// What the command line does not say, the scenario may.
CudaChoice cuda_choice(const Options& options, const LoadedScenario& loaded) {
  const CollectiveChoice& choice = loaded.scenario.collectives;
  CudaChoice result{.algorithm = options.algorithm,
                    .protocol = options.protocol,
                    .graph = is_graph(options, loaded.scenario),
                    .cupti = options.cupti};
  if (options.library != "nccl") return result;
  if (result.algorithm.empty() && choice.all_reduce != "auto") result.algorithm = choice.all_reduce;
  if (result.protocol.empty() && choice.protocol != "auto") result.protocol = choice.protocol;
  return result;
}

HostSteps steps_done(const Options& options, const HostStep& step, const LoadedScenario& loaded,
                     const HostRanks& ranks, const HostStepOptions& how) {
  if (options.backend != "cuda") return run_steps(step, loaded, ranks, how);
  return need_cuda().run_steps(step, loaded, ranks, how, cuda_choice(options, loaded));
}

// What one process with all GPUs does, and a process for each does not.
void refuse_with_processes(const Options& options, const Scenario& scenario) {
  const auto refuse = [](const char* what) {
    throw InputError(fmt::format("{} runs in one process with all GPUs: leave mpirun out", what));
  };
  if (is_graph(options, scenario)) refuse("a step as a CUDA graph");
  if (options.cupti) refuse("--cupti");
  if (scenario.parameter_server.servers > 0) refuse("a parameter server");
}

void run(const Options& options) {
  const HostCompute compute = compute_of(options);
  if (const auto processes = counted("--processes", options.processes, 100'000))
    if (start_under_mpirun(*processes, options.mpirun)) return;
  const std::size_t steps = *counted("--steps", options.steps, 100'000);
  if (options.json == "-" && options.trace == "-")
    throw InputError("standard output (-) is for one of --json, --trace");
  const bool keeps = !options.checkpoint.empty() || !options.resume.empty();
  if (keeps && compute == HostCompute::paced)
    throw InputError(
        "a paced run trains nothing: --checkpoint and --resume go with --compute real");
  if (options.checkpoint == "-") throw InputError("--checkpoint needs the name of a file");
  const LoadedScenario loaded = ready_scenario(options.scenario, options.sets);
  const InterruptGuard interrupt;
  const HostRanks ranks;
  check_graph(options, loaded.scenario);
  if (options.library == "mpi") need_processes(ranks);
  if (options.backend == "cuda" && ranks.are_processes())
    refuse_with_processes(options, loaded.scenario);
  HostStep step =
      host_step(loaded, compute, numbers_of(options, loaded.scenario), options.library == "mpi");
  if (options.library == "nccl") keep_whole(step);
  Progress progress(options.quiet || !ranks.is_first());
  progress.show("running");
  const HostSteps done = steps_done(
      options, step, loaded, ranks,
      {.compute = compute,
       .steps = steps,
       .stop = [&] { return interrupt.was_interrupted(); },
       .checkpoint = options.checkpoint,
       .resume = options.resume,
       .checkpoint_every =
           counted("--checkpoint-every", options.checkpoint_every, 1'000'000'000).value_or(0)});
  progress.show("");
  if (!ranks.is_first()) return ranks.finish();
  const Told told{.loaded = loaded,
                  .options = options,
                  .step = step,
                  .done = done,
                  .where = options.backend == "cuda"
                               ? need_cuda().describe(loaded.topology.rank_count(), ranks)
                               : ranks.describe(loaded.topology.rank_count()) +
                                     (options.library == "mpi" ? ", collectives of MPI" : ""),
                  .steps_each = step.steps_each};
  if (options.json != "-" && options.trace != "-") print(told);
  if (!options.json.empty()) write_output(options.json, json(told).dump(2) + "\n");
  if (!options.trace.empty()) {
    OutputFile trace(options.trace);
    const auto slices = slices_of(step, told_of_whole(step, done.timelines[done.median]));
    write_slices(trace, {{"measured", slices}});
    trace.finish();
  }
  ranks.finish();
}

}  // namespace

void add_run_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command =
      program.add("run", "The same step for real: threads here, or processes of mpirun");
  command.option("SCENARIO", &options->scenario, "A scenario file", {.required = true});
  command.option("--set", &options->sets, "Change a key: tp=4; may be repeated",
                 {.word_by_word = true});
  add_calibration_option(command, options->sets);
  command.option("--backend", &options->backend, "host, or cuda: the GPUs of this machine",
                 {.required = true});
  command.option("--compute", &options->compute,
                 "real; or paced: computes wait for their modelled time");
  command.option("--library", &options->library,
                 "Collectives: own (our schedules); mpi, with processes; nccl, on GPUs");
  command.flag("--graph", options->graph,
               "On GPUs, each step as one CUDA graph, as with cuda_graph");
  command.flag("--cupti", options->cupti, "On GPUs, times by CUPTI's records, not by events");
  command.option("--algorithm", &options->algorithm, "NCCL's: ring, tree, nvls, ...");
  command.option("--protocol", &options->protocol, "NCCL's: LL, LL128, Simple");
  command.option("--steps", &options->steps,
                 "How many are timed (5), after one to warm up that trains nothing");
  command.option("--checkpoint", &options->checkpoint,
                 "Keep the training in a file: at the end, and when it is stopped");
  command.option("--checkpoint-every", &options->checkpoint_every,
                 "And whenever that many steps are done");
  command.option("--resume", &options->resume, "Go on from a checkpoint, with the same bits");
  command.option("--seed", &options->seed,
                 "Of parameters and samples, in place of the scenario's data_seed (1)");
  command.option(
      "--learning-rate", &options->learning_rate,
      "In place of the scenario's (sgd 0.1, momentum 0.05, adam 0.003, lars 5, lamb 0.01)");
  command.option("--processes", &options->processes,
                 "Ranks as so many processes: starts mpirun (-n N), and watches over it");
  command.option("--mpirun", &options->mpirun, "More words for mpirun: '--hostfile hosts'");
  command.option("--json", &options->json, "Write everything as JSON; - is standard output");
  command.option("--trace", &options->trace, "Write the median step as a trace for Perfetto");
  command.flag("--quiet", options->quiet, "No progress line");
  command.does([options] { run(*options); });
}

}  // namespace rehearse
