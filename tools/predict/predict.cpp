// `rehearse predict SCENARIO`: one training step, kernel by kernel: how long, why, does it fit,
// and what to try next.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/engine/explain.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/calibration_option.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/cli/engine.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"
#include "tools/output/trace_writer.hpp"
#include "tools/predict/predict_page.hpp"
#include "tools/predict/predict_report.hpp"
#include "tools/predict/reference_step.hpp"
#include "tools/predict/server_summary.hpp"
#include "tools/predict/step_trace.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string scenario, engine = "fast", json, csv, trace, trace_dir, trace_ranks, report;
  std::vector<std::string> sets;
  std::optional<std::int64_t> threads;
  bool no_fold = false, explain = false, no_advice = false, quiet = false;
};

std::unique_ptr<OutputFile> open(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
}

void finish(OutputFile* file, std::string_view text) {
  if (file == nullptr) return;
  file->write(text);
  file->finish();
}

std::size_t outputs_on_stdout(const Options& options) {
  std::size_t count = 0;
  for (const auto* path : {&options.json, &options.csv, &options.trace, &options.report})
    count += *path == "-";
  return count;
}

void check(const Options& options) {
  if (outputs_on_stdout(options) > 1)
    throw InputError("standard output (-) is for one of --json, --csv, --trace, --report");
  if (options.engine != "fast" && options.engine != "simgrid") {
    const std::vector<std::string> known{"fast", "simgrid"};
    const std::string hint = did_you_mean(options.engine, known);
    throw InputError(fmt::format("unknown engine '{}'{}", options.engine,
                                 hint.empty() ? "; there are fast and simgrid" : hint));
  }
  if (options.trace.empty() && options.trace_dir.empty() && !options.trace_ranks.empty())
    throw InputError("--trace-ranks says what --trace shows, and there is no --trace");
}

// Asked before anything is told: a mistake is one line and nothing else.
std::vector<Rank> ranks_to_trace(const Options& options, const StepPredictor::Answer& answer) {
  if (options.trace.empty() && options.trace_dir.empty()) return {};
  std::vector<Rank> ranks = traced_ranks(options.trace_ranks, answer);
  constexpr std::size_t most = 5'000'000;  // about 1.5 GB: more than any viewer opens
  const std::size_t ops = answer.step.program.size() / answer.step.roles.size() * ranks.size();
  if (ops > most)
    throw InputError(fmt::format(
        "a trace of {} kernels is too large to open; choose some with --trace-ranks", ops));
  return ranks;
}

// One for all ranks, and in a folder a file for each rank, as profilers write them and
// HolisticTraceAnalysis reads them.
void write_traces(const Options& options, OutputFile* trace, const LoadedScenario& loaded,
                  const StepPredictor::Answer& answer, std::span<const Rank> ranks) {
  if (ranks.empty()) return;
  Routing routing{loaded.topology};
  const Paths paths{answer.step.program, routing};
  const Training& training = loaded.scenario.training;
  if (trace != nullptr) {
    write_step_trace(*trace, answer, paths, training, ranks);
    trace->finish();
  }
  const std::string& folder = options.trace_dir;
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw DeviceError(fmt::format("cannot make '{}': {}", folder, error.message()));
  for (const Rank& rank : ranks) {
    OutputFile file(
        (std::filesystem::path(folder) / fmt::format("rank_{}.json.gz", index(rank))).string());
    write_step_trace(file, answer, paths, training, {&rank, 1});
    file.finish();
  }
}

// A run with parameter servers: many steps of all workers, so other figures are asked of it.
void predict_with_servers(const Options& options, const LoadedScenario& loaded) {
  if (!options.trace_dir.empty())
    throw InputError("--trace-dir is for steps without parameter servers; use --trace");
  const auto json = open(options.json), csv = open(options.csv), trace = open(options.trace),
             page = open(options.report);
  Progress progress(options.quiet);
  progress.show("simulating every worker's steps");
  const ShapedRoofline cost;
  const auto start = std::chrono::steady_clock::now();
  // The reference engine and a trace show every server; the answer is the same.
  const bool whole = options.no_fold || options.engine != "fast" || trace != nullptr;
  const ServerAnswer answer =
      predict_servers(loaded.scenario, loaded.workload, loaded.topology, cost, !whole);
  Routing routing{loaded.topology};
  std::optional<Time> reference;
  if (options.engine != "fast")
    reference = make_engine(options.engine, routing, cost)->run(answer.lowered.program).makespan;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const ServerTold told{
      .loaded = loaded,
      .answer = answer,
      .cost = training_cost(loaded.scenario.training, answer.prediction, answer.prediction.step),
      .engine = options.engine,
      .reference = reference,
      .wall = wall.count()};
  progress.show("");
  if (outputs_on_stdout(options) == 0) {
    fmt::print("{}", server_summary(told));
    if (options.explain)
      fmt::print("\n{}", explain_critical_path(answer.lowered.program, answer.timeline));
  }
  finish(json.get(), server_json(told));
  finish(csv.get(), workers_csv(answer));
  if (page) finish(page.get(), server_page(told));
  if (trace == nullptr) return;
  TraceOptions shown;
  if (!options.trace_ranks.empty())
    shown.ranks = parse_ranks(options.trace_ranks, loaded.topology.rank_count());
  write_trace(*trace, answer.lowered.program, answer.timeline,
              Paths{answer.lowered.program, routing}, loaded.topology, shown);
  trace->finish();
}

void predict(const Options& options) {
  check(options);
  const std::size_t threads = counted("--threads", options.threads, 1024)
                                  .value_or(std::max(1u, std::thread::hardware_concurrency()));
  const LoadedScenario loaded = ready_scenario(options.scenario, options.sets);
  if (loaded.scenario.parameter_server.servers > 0) return predict_with_servers(options, loaded);
  // Opened before the work, so that a path that cannot be written is known at once.
  const auto json = open(options.json), csv = open(options.csv), trace = open(options.trace),
             page = open(options.report);
  Progress progress(options.quiet);
  progress.show("simulating every kernel");
  const ShapedRoofline cost;
  const auto start = std::chrono::steady_clock::now();
  StepPredictor predictor(loaded.topology, cost);
  const StepPredictor::Answer answer = predictor.predict(
      loaded.scenario, loaded.workload, {.fold = !options.no_fold, .count_links = page != nullptr});
  std::optional<ReferenceStep> reference;
  if (options.engine != "fast") {
    progress.show("simulating every transfer with " + options.engine);
    reference = run_reference(options.engine, loaded, predictor, cost);
  }
  const std::optional<AverageStep> average =
      average_step(loaded.scenario, loaded.workload, answer.prediction.step, predictor);
  std::optional<StepTimes> times;
  if (loaded.scenario.imperfection.seeds > 1) {
    progress.show("simulating a step for each seed");
    times = step_times(loaded.scenario, loaded.workload, loaded.topology, cost, threads);
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const std::vector<Rank> ranks = ranks_to_trace(options, answer);
  PredictReport report{.loaded = loaded,
                       .answer = answer,
                       .parts = breakdown(answer.prediction, answer.step, answer.timeline),
                       .verdict = {},
                       .average = average,
                       .cost = training_cost(loaded.scenario.training, answer.prediction,
                                             average ? average->step : answer.prediction.step),
                       .engine = options.engine,
                       .reference = reference,
                       .times = std::move(times),
                       .wall = wall.count(),
                       .peak_memory = peak_memory_bytes()};
  progress.show("trying what else one could do");
  report.verdict = judge(loaded, answer.prediction, predictor, !options.no_advice);
  progress.show("");
  // With results on standard output, the words go where they do not get in the way.
  std::FILE* const words = outputs_on_stdout(options) > 0 ? nullptr : stdout;
  if (words != nullptr) {
    fmt::print(words, "{}", summary(report));
    if (options.explain) fmt::print(words, "{}", explanation(report));
  }
  finish(json.get(), prediction_json(report));
  finish(csv.get(), roles_csv(report));
  if (page) finish(page.get(), predict_page(report));
  write_traces(options, trace.get(), loaded, answer, ranks);
}

}  // namespace

void add_predict_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add(
      "predict", "One training step of a scenario: time, memory, what limits it, what to try");
  command.option("SCENARIO", &options->scenario, "A scenario file; - is standard input",
                 {.required = true});
  command.option("--set", &options->sets,
                 "Change a key: tp=4, training.micro_batch_size=2; may be repeated",
                 {.word_by_word = true});
  add_calibration_option(command, options->sets);
  command.option("--engine", &options->engine, "fast (ours) or simgrid (the reference)");
  command.option("--json", &options->json, "Write everything as JSON; - is standard output");
  command.option("--csv", &options->csv, "Write a row for each role as CSV");
  command.option("--report", &options->report, "Write a page with figures (.html)");
  command.option("--trace", &options->trace, "Write a trace for Perfetto (.json or .json.gz)");
  command.option("--trace-dir", &options->trace_dir, "Write a trace of each rank into a folder");
  command.option("--trace-ranks", &options->trace_ranks, "Which ranks it shows, as in 0-7,12");
  command.option("--threads", &options->threads, "For many seeds (default: all cores)");
  command.flag("--no-fold", options->no_fold, "Simulate every rank, also those alike");
  command.flag("--explain", options->explain, "The longest kernels and the critical path");
  command.flag("--no-advice", options->no_advice, "Do not predict what else one could do");
  command.flag("--quiet", options->quiet, "No progress line");
  command.does([options] { predict(*options); });
}

}  // namespace rehearse
