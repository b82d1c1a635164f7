// `rehearse sweep SCENARIO --axis KEY=VALUES…`: every combination predicted, the best one marked.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "sim/base/error.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/calibration_option.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/measure/host_ranks.hpp"
#include "tools/measure/interrupt.hpp"
#include "tools/output/chart.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"
#include "tools/sweep/sweep_exchange.hpp"
#include "tools/sweep/sweep_page.hpp"
#include "tools/sweep/sweep_report.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string scenario, json, csv, report;
  std::vector<std::string> sets, axes;
  std::optional<std::int64_t> threads, top;
  bool quiet = false;
};

std::unique_ptr<OutputFile> open(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
}

void finish(OutputFile* file, std::string_view text) {
  if (file == nullptr) return;
  file->write(text);
  file->finish();
}

std::vector<Axis> axes_of(const Options& options) {
  if (options.axes.empty())
    throw InputError("a sweep needs at least one --axis, e.g. --axis tp=1,2,4,8");
  std::vector<Axis> axes;
  std::vector<Problem> problems;
  for (const std::string& text : options.axes) {
    try {
      axes.push_back(parse_sweep_axis(text));
      for (std::size_t a = 0; a + 1 < axes.size(); ++a)
        if (axes[a].settings.front().key == axes.back().settings.front().key &&
            axes[a].settings.front().path == axes.back().settings.front().path)
          throw InputError({fmt::format("--axis {}", text)}, "this key is an axis already");
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return axes;
}

void sweep(const Options& options) {
  std::size_t on_stdout = 0;
  for (const auto* path : {&options.json, &options.csv, &options.report}) on_stdout += *path == "-";
  if (on_stdout > 1) throw InputError("standard output (-) is for one of --json, --csv, --report");
  const std::size_t threads = counted("--threads", options.threads, 1024)
                                  .value_or(std::max(1u, std::thread::hardware_concurrency()));
  const std::size_t top = counted("--top", options.top).value_or(10);
  const std::vector<Axis> axes = axes_of(options);
  LoadedScenario loaded = load_scenario(options.scenario, options.sets);
  loaded.topology =
      machine_of(loaded.scenario, std::move(loaded.topology), profile_of(loaded.scenario));
  const HostRanks ranks;  // of mpirun, if it started us: each takes its share of the points
  const bool is_first = ranks.is_first();
  const auto json = open(is_first ? options.json : ""), csv = open(is_first ? options.csv : ""),
             page = open(is_first ? options.report : "");
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::vector<SweepPoint> points;
  bool was_interrupted = false;
  {
    Progress progress(options.quiet || !is_first);
    const InterruptGuard guard;
    points = run_sweep({.loaded = loaded,
                        .axes = axes,
                        .threads = threads,
                        .share = ranks.number(),
                        .shares = std::max<std::size_t>(ranks.processes(), 1),
                        .stop = [&] { return guard.was_interrupted(); },
                        .progress =
                            [&](const SweepProgress& at) {
                              progress.show(fmt::format(
                                  "{} of {} points, {:.0f} a second, best so far {} samples/s",
                                  at.done, at.all, static_cast<double>(at.done) / seconds(),
                                  grouped(at.best, 2)));
                            }});
    was_interrupted = guard.was_interrupted();
  }
  if (ranks.are_processes()) points = joined_points(ranks.gather(points_text(points)));
  if (!is_first) return;
  const SweepReport report{loaded, axes, points, top};
  if (on_stdout == 0) {
    fmt::print("{}", sweep_text(report));
    fmt::print("{} points in {:.3f} s, {:.0f} a second on {}\n", points.size(), seconds(),
               static_cast<double>(points.size()) / seconds(), counted_noun(threads, "thread"));
  }
  finish(json.get(), sweep_json(report));
  finish(csv.get(), sweep_csv(report));
  if (page) finish(page.get(), sweep_page(report));
  if (was_interrupted) throw CheckFailed("interrupted: not all points were predicted");
}

}  // namespace

void add_sweep_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add(
      "sweep", "Every combination of some keys' values, predicted; the best one marked");
  command.option("SCENARIO", &options->scenario, "A scenario file; - is standard input",
                 {.required = true});
  command.option("--axis", &options->axes,
                 "A key and its values: tp=1,2,4,8 or nodes=1..64*2; may be repeated",
                 {.word_by_word = true});
  command.option("--set", &options->sets, "Change a key for all points; may be repeated",
                 {.word_by_word = true});
  add_calibration_option(command, options->sets);
  command.option("--csv", &options->csv, "Write a row for each point; - is standard output");
  command.option("--json", &options->json, "Write everything as JSON");
  command.option("--report", &options->report, "Write a page with figures (.html)");
  command.option("--threads", &options->threads, "How many points at a time (all cores)");
  command.option("--top", &options->top, "How many points the table shows (10)");
  command.flag("--quiet", options->quiet, "No progress line");
  command.does([options] { sweep(*options); });
}

}  // namespace rehearse
