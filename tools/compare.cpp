// `rehearse compare PREDICTED MEASURED`: two traces, or a scenario (.toml) and a trace; or
// `rehearse compare SCENARIO --backend host`: a prediction against a fresh run of the very same
// ops.
#include <fmt/format.h>

#include <memory>

#include "sim/error.hpp"
#include "sim/fast_simulator.hpp"
#include "sim/shaped_roofline.hpp"
#include "strategies/check_scenario.hpp"
#include "tools/calibrated.hpp"
#include "tools/calibration_option.hpp"
#include "tools/command.hpp"
#include "tools/commands.hpp"
#include "tools/compare_page.hpp"
#include "tools/comparison.hpp"
#include "tools/counts.hpp"
#include "tools/interrupt.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"

namespace rehearse {

namespace {

struct Options {
  std::vector<std::string> files, sets;
  std::string backend, compute = "paced", json, trace, report;
  std::int64_t steps = 5;
  bool quiet = false;
};

/// Whether standard output is free for people.
bool talks(const Options& options) {
  return options.json != "-" && options.trace != "-" && options.report != "-";
}

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
  loaded.topology = calibrated(loaded.scenario, std::move(loaded.topology));
  // Who only waits for a kernel's time has nothing that communication could take away.
  if (!options.backend.empty() && options.compute == "paced")
    for (Accelerator& device : loaded.topology.accelerators) device.communication_share = 0;
  return loaded;
}

/// A scenario's step lowered whole, for every rank, and simulated.
struct SimulatedStep {
  LoadedScenario scenario;
  ShapedRoofline cost;
  StepPredictor predictor{scenario.topology, cost};
  Routing routing{scenario.topology};
  HostStep step;
  Timeline timeline;

  SimulatedStep(const Options& options, HostCompute compute)
      : scenario{loaded(options)},
        step{host_step(scenario, predictor, routing, compute, default_numbers(scenario.scenario))},
        timeline{FastSimulator{routing, cost}.run(step.program)} {}
  SimulatedStep(const SimulatedStep&) = delete;

  std::vector<TraceSlice> slices() const { return slices_of(step, told_of_whole(step, timeline)); }
};

void compare_with_trace(const Options& options) {
  const SimulatedStep predicted(options, HostCompute::paced);
  const std::vector<TraceSlice> before = predicted.slices();
  const std::vector<TraceSlice> after = read_trace(options.files[1]);
  const Scenario& scenario = predicted.scenario.scenario;
  const std::string calibration = calibration_words(scenario);
  if (talks(options)) fmt::print("{}\npredicted with {}\n\n", scenario.title, calibration);
  tell(options, compare(before, after),
       {scenario.title,
        {{"predicted with", calibration}, {"measured", options.files[1]}},
        before,
        after});
}

void compare_with_run(const Options& options) {
  if (options.backend != "host")
    throw InputError(fmt::format("unknown backend '{}'; there is host", options.backend));
  if (options.compute != "paced" && options.compute != "real")
    throw InputError(fmt::format("--compute {} is neither 'real' nor 'paced'", options.compute));
  const bool is_paced = options.compute == "paced";
  const HostCompute compute = is_paced ? HostCompute::paced : HostCompute::calls;
  const InterruptGuard interrupt;
  const HostRanks ranks;
  Progress progress(options.quiet || !ranks.is_first());
  progress.show("predicting");
  const SimulatedStep predicted(options, compute);
  const std::string& title = predicted.scenario.scenario.title;
  progress.show("running");
  const HostSteps done = run_steps(predicted.step, predicted.scenario, ranks,
                                   {.compute = compute,
                                    .steps = *counted("--steps", options.steps, 100'000),
                                    .stop = [&] { return interrupt.was_interrupted(); }});
  progress.show("");
  if (!ranks.is_first()) return;
  const auto before = predicted.slices();
  const auto after =
      slices_of(predicted.step, told_of_whole(predicted.step, done.timelines[done.median]));
  Comparison comparison = compare(before, after);
  comparison.spread = done.spread;
  const std::string calibration = calibration_words(predicted.scenario.scenario);
  const std::string how =
      fmt::format("{}, median of {} steps; computes {}",
                  ranks.describe(predicted.scenario.topology.rank_count()), done.timelines.size(),
                  is_paced ? "PACED by the model: only communication is real" : "real");
  if (talks(options))
    fmt::print("{}\npredicted with {}\nmeasured on {}\n\n", title, calibration, how);
  tell(options, comparison,
       {title, {{"predicted with", calibration}, {"measured on", how}}, before, after});
}

void compare(const Options& options) {
  if ((options.json == "-") + (options.trace == "-") + (options.report == "-") > 1)
    throw InputError("standard output (-) is for one of --json, --trace, --report");
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
  command.option("--steps", &options->steps, "How many are timed (5)");
  command.option("--json", &options->json, "Write everything as JSON; - is standard output");
  command.option("--trace", &options->trace, "Write one trace with both timelines");
  command.option("--report", &options->report, "Write a page with figures (.html)");
  command.flag("--quiet", options->quiet, "No progress line");
  command.does([options] { compare(*options); });
}

}  // namespace rehearse
