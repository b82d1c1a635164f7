// `rehearse compare PREDICTED MEASURED`: two traces, or a scenario (.toml) and a trace; or
// `rehearse compare SCENARIO --backend host`: a prediction against a fresh run of the very same
// ops.
#include <fmt/format.h>

#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "sim/scenario/scenario_machine.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/calibration_option.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/measure/host_calibrator.hpp"
#include "tools/measure/interrupt.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"
#include "tools/run/compare_page.hpp"
#include "tools/run/comparison.hpp"

namespace rehearse {

namespace {

struct Options {
  std::vector<std::string> files, sets;
  std::string backend, compute = "paced", profile, largest = "16MiB", json, trace, report;
  std::int64_t steps = 5, rounds = 10;
  bool quiet = false;
  int to_standard_output() const {
    return (json == "-") + (trace == "-") + (report == "-") + (profile == "-");
  }
  bool is_paced() const { return !backend.empty() && compute == "paced"; }
};

/// Whether standard output is free for people.
bool talks(const Options& options) { return options.to_standard_output() == 0; }

void tell(const Options& options, const Comparison& comparison, const ComparedSides& sides) {
  if (talks(options)) fmt::print("{}", comparison_text(comparison));
  if (!options.json.empty()) write_output(options.json, comparison_json(comparison));
  if (!options.report.empty()) write_output(options.report, compare_page(comparison, sides));
  if (options.trace.empty()) return;
  OutputFile trace(options.trace);
  write_slices(trace, {{"predicted", sides.predicted}, {"measured", sides.measured}});
  trace.finish();
}

void compare_traces(const Options& options) {
  const std::vector<TraceSlice> predicted = read_trace(options.files[0]);
  const std::vector<TraceSlice> measured = read_trace(options.files[1]);
  tell(options, compare(predicted, measured),
       {"Two traces compared",
        {{"predicted", options.files[0]}, {"measured", options.files[1]}},
        predicted,
        measured});
}

LoadedScenario loaded(const Options& options) {
  LoadedScenario loaded = load_scenario(options.files[0], options.sets);
  check_scenario(loaded);
  if (loaded.scenario.parameter_server.servers > 0)
    throw InputError("a run with parameter servers cannot be compared yet; predict it");
  return loaded;
}

/// The scenario on its machine as it was measured just now, or as its profile says.
LoadedScenario ready_for(const Options& options, const LoadedScenario& loaded,
                         const std::optional<Profile>& measured) {
  LoadedScenario scenario = measured ? ready(loaded, measured->calibration) : ready(loaded);
  // Who only waits for a kernel's time has nothing that communication could take away.
  if (options.is_paced())
    for (Accelerator& device : scenario.topology.accelerators) device.communication_share = 0;
  return scenario;
}

std::vector<TraceSlice> slices(const HostStep& step, const Timeline& timeline) {
  return slices_of(step, told_of_whole(step, timeline));
}

std::vector<TraceSlice> predicted(const HostStep& step, const Topology& machine) {
  Routing routing{machine};
  const ShapedRoofline cost;
  return slices(step, FastSimulator{routing, cost}.run(step.program));
}

void compare_with_trace(const Options& options) {
  const LoadedScenario scenario = ready_for(options, loaded(options), {});
  const HostStep step = host_step(scenario, HostCompute::paced, default_numbers(scenario.scenario));
  const std::vector<TraceSlice> before = predicted(step, scenario.topology);
  const std::vector<TraceSlice> after = read_trace(options.files[1]);
  const std::string& title = scenario.scenario.title;
  const std::string calibration = calibration_words(scenario.scenario);
  if (talks(options)) fmt::print("{}\npredicted with {}\n\n", title, calibration);
  tell(options, compare(before, after),
       {title, {{"predicted with", calibration}, {"measured", options.files[1]}}, before, after});
}

/// Calibrates between the steps of a run, if it was asked to: a machine that changes its speed is
/// the same one then, on both sides of the comparison.
class Turns {
 public:
  Turns(const Options& options, const LoadedScenario& scenario, const HostRanks& ranks,
        Progress& progress, std::function<bool()> stop) {
    if (options.profile.empty()) return;
    if (!scenario.scenario.calibration.empty())
      throw InputError("--calibrate measures the machine, and a profile of it was named as well");
    calibrator_.emplace(
        ranks,
        HostCalibrator::What{.topology = scenario.topology,
                             .scenarios = {scenario},
                             .largest = parse_bytes(options.largest),
                             .kernels = !options.is_paced(),  // or they take what the file says
                             .stop = std::move(stop)},
        progress);
    calibrator_->round();
  }

  void round() {
    if (calibrator_) calibrator_->round();
  }
  std::optional<Profile> profile() const {
    if (!calibrator_) return std::nullopt;
    Profile profile = calibrator_->profile();
    profile.calibration.name = "measured in turns with the run";
    profile.calibration.error = profile.mean_error();
    return profile;
  }

 private:
  std::optional<HostCalibrator> calibrator_;
};

void compare_with_run(const Options& options) {
  if (options.backend != "host")
    throw InputError(fmt::format("unknown backend '{}'; there is host", options.backend));
  if (options.compute != "paced" && options.compute != "real")
    throw InputError(fmt::format("--compute {} is neither 'real' nor 'paced'", options.compute));
  const HostCompute compute = options.is_paced() ? HostCompute::paced : HostCompute::calls;
  const std::size_t steps = *counted("--steps", options.steps, 100'000);
  const std::size_t in_a_turn = (steps - 1) / *counted("--rounds", options.rounds, 100'000) + 1;
  const InterruptGuard interrupt;
  const auto stop = [&] { return interrupt.was_interrupted(); };
  const HostRanks ranks;
  std::optional<OutputFile> profile_file;  // before the run: it may be long, and the name wrong
  if (!options.profile.empty() && ranks.is_first()) profile_file.emplace(options.profile);
  Progress progress(options.quiet || !ranks.is_first());
  progress.show("predicting");
  const LoadedScenario scenario = loaded(options);
  Turns turns(options, scenario, ranks, progress, stop);
  // On the machine as it is known before the run.
  const LoadedScenario first = ready_for(options, scenario, turns.profile());
  const HostStep step = host_step(first, compute, default_numbers(scenario.scenario));
  const auto take_turns = [&](std::size_t number) {
    if (number % in_a_turn == 0) turns.round();
    progress.show(fmt::format("running, step {} of {}", number + 1, steps));
  };
  const HostSteps done = run_steps(
      step, first, ranks, {.compute = compute, .steps = steps, .stop = stop, .before = take_turns});
  progress.show("");
  if (!ranks.is_first()) return;
  const std::optional<Profile> profile = turns.profile();
  if (profile) {
    profile_file->write(profile_text(*profile));
    profile_file->finish();
  }
  const auto before = predicted(step, ready_for(options, scenario, profile).topology);
  const auto after = slices(step, done.timelines[done.median]);
  Comparison comparison = compare(before, after);
  comparison.spread = done.spread;
  const std::string& title = scenario.scenario.title;
  const std::string calibration =
      profile ? describe(profile->calibration) : calibration_words(scenario.scenario);
  const std::string how =
      fmt::format("{}, median of {} steps; computes {}",
                  ranks.describe(scenario.topology.rank_count()), done.timelines.size(),
                  options.is_paced() ? "PACED by the model: only communication is real" : "real");
  if (talks(options))
    fmt::print("{}\npredicted with {}\nmeasured on {}\n\n", title, calibration, how);
  tell(options, comparison,
       {title, {{"predicted with", calibration}, {"measured on", how}}, before, after});
}

void compare(const Options& options) {
  if (options.to_standard_output() > 1)
    throw InputError("standard output (-) is for one of --json, --trace, --report, --calibrate");
  if (!options.profile.empty() && options.backend.empty())
    throw InputError("--calibrate measures in turns with a run: it goes with --backend host");
  if (options.files.size() == 2 && options.backend.empty())
    return options.files[0].ends_with(".toml") ? compare_with_trace(options)
                                               : compare_traces(options);
  if (options.files.size() == 1 && !options.backend.empty()) return compare_with_run(options);
  throw InputError(
      "compare takes two traces, a scenario and a trace, or a scenario with --backend host to run");
}

}  // namespace

void add_compare_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add(
      "compare",
      "Predicted against measured: two traces, or a scenario against one or a fresh run");
  command.option("FILES", &options->files, "PREDICTED MEASURED, SCENARIO MEASURED, or SCENARIO",
                 {.required = true});
  command.option("--backend", &options->backend, "host: run the scenario now");
  command.option("--compute", &options->compute, "paced, or real");
  command.option("--set", &options->sets, "Change a key of the scenario; may be repeated",
                 {.word_by_word = true});
  add_calibration_option(command, options->sets);
  command.option("--calibrate", &options->profile,
                 "Measure the machine in turns with the steps, predict with that, and write the "
                 "profile here");
  command.option("--rounds", &options->rounds,
                 "How often it is measured then: at most before each step (10)");
  command.option("--largest", &options->largest, "The longest message it is measured with (16MiB)");
  command.option("--steps", &options->steps, "How many are timed (5)");
  command.option("--json", &options->json, "Write everything as JSON; - is standard output");
  command.option("--trace", &options->trace, "Write one trace with both timelines");
  command.option("--report", &options->report, "Write a page with figures (.html)");
  command.flag("--quiet", options->quiet, "No progress line");
  command.does([options] { compare(*options); });
}

}  // namespace rehearse
