// `rehearse accuracy FILE.csv…`: published measurements predicted row by row, and how far off.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "sim/base/error.hpp"
#include "tools/accuracy/accuracy_page.hpp"
#include "tools/accuracy/accuracy_report.hpp"
#include "tools/accuracy/accuracy_summary.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"
#include "topology/files/text_file.hpp"
#include "topology/formats/libraries.hpp"

namespace rehearse {

namespace {

struct Options {
  std::vector<std::string> files;
  std::string json, report, by = "sweep", libraries, calibration, leave_one_out;
  std::optional<std::int64_t> threads;
  std::int64_t worst = 5;
  bool quiet = false;
};

// All mistakes of all files at once.
std::vector<MeasuredFile> load_all(const std::vector<std::string>& names) {
  std::vector<MeasuredFile> files;
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i)) {
      problems.push_back({{names[i]}, "is named twice"});
      continue;
    }
    try {
      files.push_back(load_measured(names[i]));
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return files;
}

// Every sweep of the files for which the folder has constants that were fitted without it.
std::vector<LeftOutSweep> leave_out(const std::vector<MeasuredFile>& files,
                                    const std::string& folder, std::size_t threads) {
  std::vector<LeftOutSweep> all;
  for (const MeasuredFile& file : files) {
    std::vector<std::string> sweeps;
    for (const MeasuredRow& row : file.rows)
      if (std::find(sweeps.begin(), sweeps.end(), row.sweep) == sweeps.end())
        sweeps.push_back(row.sweep);
    for (const std::string& sweep : sweeps) {
      const std::filesystem::path profile =
          std::filesystem::path(folder) / ("without-" + sweep + ".toml");
      if (sweep.empty() || !std::filesystem::exists(profile)) continue;
      std::vector<MeasuredFile> one{{file.name, file.format, {}}};
      for (const MeasuredRow& row : file.rows)
        if (row.sweep == sweep) one.front().rows.push_back(row);
      const std::vector<AccuracyRow> rows =
          run_accuracy({.files = one,
                        .threads = threads,
                        .calibration = load_calibration(profile.string()),
                        .progress = {}});
      AccuracyRows all_of_it;
      for (const AccuracyRow& row : rows) all_of_it.push_back(&row);
      const AccuracySummary sum = summed_up(all_of_it, one);
      all.push_back({file.name, sweep, sum.rows, sum.mape});
    }
  }
  return all;
}

void accuracy(const Options& options) {
  if (options.by != "sweep" && options.by != "file")
    throw InputError(fmt::format("--by {} is neither 'sweep' nor 'file'", options.by));
  if (options.json == "-" && options.report == "-")
    throw InputError("standard output (-) is for one of --json, --report");
  if (options.worst < 0)
    throw InputError(fmt::format("--worst {} must not be below 0", options.worst));
  const std::size_t threads = counted("--threads", options.threads, 1024)
                                  .value_or(std::max(1u, std::thread::hardware_concurrency()));
  const std::vector<MeasuredFile> files = load_all(options.files);
  std::optional<Calibration> calibration;
  if (!options.calibration.empty()) calibration = load_calibration(options.calibration);
  if (!options.libraries.empty())
    replace_library_table(read_text_file(options.libraries), options.libraries);
  const auto json = options.json.empty() ? nullptr : std::make_unique<OutputFile>(options.json);
  const auto page = options.report.empty() ? nullptr : std::make_unique<OutputFile>(options.report);
  std::vector<AccuracyRow> rows;
  {
    Progress progress(options.quiet);
    rows = run_accuracy({.files = files,
                         .threads = threads,
                         .calibration = std::move(calibration),
                         .progress = [&](std::size_t done, std::size_t all) {
                           progress.show(fmt::format("{} of {} rows", done, all));
                         }});
  }
  AccuracyReport report{files, rows, options.by == "sweep",
                        static_cast<std::size_t>(options.worst)};
  if (!options.leave_one_out.empty())
    report.left_out = leave_out(files, options.leave_one_out, threads);
  if (options.json != "-" && options.report != "-") fmt::print("{}", accuracy_text(report));
  if (json) {
    json->write(accuracy_json(report));
    json->finish();
  }
  if (!page) return;
  page->write(accuracy_page(report));
  page->finish();
}

}  // namespace

void add_accuracy_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add(
      "accuracy", "Published measurements, predicted row by row: how far off, and where");
  command.option("FILE", &options->files,
                 "Measurements as CSV (scenarios/published/README.md); - is standard input",
                 {.required = true});
  command.option("--json", &options->json, "Write all rows and sums; - is standard output");
  command.option("--calibration", &options->calibration,
                 "A profile laid over the machines and frameworks that it knows");
  command.option("--leave-one-out", &options->leave_one_out,
                 "A folder of profiles, without-SWEEP.toml each fitted without one: its error");
  command.option("--report", &options->report, "Write a page with figures (.html)");
  command.option("--by", &options->by, "A line for each sweep (default) or each file");
  command.option("--worst", &options->worst, "How many of the worst cases of a file (5)");
  command.option("--threads", &options->threads, "How many rows at a time (all cores)");
  command.option("--libraries", &options->libraries,
                 "Constants of libraries in place of ours (topology/formats/libraries.toml)");
  command.flag("--quiet", options->quiet, "No progress line");
  command.does([options] { accuracy(*options); });
}

}  // namespace rehearse
