// `rehearse schedule list|show|export`: a pipeline schedule before any model or machine: as a
// drawing, and as the CSV that PyTorch reads.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "strategies/schedules/draw_schedule.hpp"
#include "strategies/schedules/schedule_csv.hpp"
#include "strategies/schedules/schedules.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/output/output_file.hpp"
#include "tools/report/pipeline_figure.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string name, file, figure, output = "-";
  std::vector<std::string> times;
  std::optional<std::int64_t> ranks, microbatches, chunks;
  std::int64_t columns = 160;
  bool idle = false, communication = false;
};

void list() {
  fmt::print("{:<22} {:<7} order\n", "name", "chunks");
  for (const ScheduleKind& kind : schedules())
    fmt::print("{:<22} {:<7} {}\n", kind.name,
               kind.chunks == 0 ? "any" : std::to_string(kind.chunks), kind.summary);
  fmt::print("\nchunks: stages on each rank (--vpp)\n");
}

// The numbers of micro-batches next to the one refused that the schedule does take.
std::string taken_instead(const ScheduleKind& kind, const PipelineShape& shape) {
  const auto takes = [&](std::size_t m) {
    return m > 0 && !refusal(kind, {shape.ranks, m, shape.chunks});
  };
  constexpr std::size_t furthest = 1'000'000;  // more than any schedule asks between two
  std::size_t fewer = shape.microbatches, more = shape.microbatches;
  while (fewer > 0 && shape.microbatches - fewer < furthest && !takes(fewer)) --fewer;
  while (more - shape.microbatches < furthest && !takes(more)) ++more;
  const bool has_fewer = takes(fewer), has_more = takes(more);
  if (!has_fewer && !has_more) return "";
  if (has_fewer && has_more) return fmt::format("; it takes {} or {}", fewer, more);
  return fmt::format("; it takes {}", has_fewer ? fewer : more);
}

// Asked before it is made: some 60 MB of CSV.
void check_size(const PipelineShape& shape) {
  constexpr std::size_t most = 5'000'000;
  const std::size_t passes = shape.ranks * shape.chunks * shape.microbatches;
  if (passes > most)
    throw InputError(
        fmt::format("a schedule of {} forward passes: more than {} are neither drawn nor written",
                    passes, most));
}

Schedule by_name(const Options& options) {
  const ScheduleKind& kind = schedule_kind(options.name);
  const std::optional<std::size_t> ranks = counted("--pp", options.ranks);
  const std::optional<std::size_t> microbatches = counted("--microbatches", options.microbatches);
  if (!ranks || !microbatches)
    throw InputError(fmt::format("a schedule has a size: add {}{}{}", ranks ? "" : "--pp",
                                 ranks || microbatches ? "" : " and ",
                                 microbatches ? "" : "--microbatches"));
  const std::size_t usual = std::max<std::size_t>(kind.chunks, 1);
  const PipelineShape shape{*ranks, *microbatches,
                            counted("--vpp", options.chunks).value_or(usual)};
  if (const std::optional<std::string> reason = refusal(kind, shape))
    throw InputError(
        fmt::format("schedule {}: {}{}", kind.name, *reason, taken_instead(kind, shape)));
  check_size(shape);
  return kind.make(shape);
}

Schedule schedule_of(const Options& options) {
  if (options.file.empty() && options.name.empty())
    throw InputError("no schedule given: a name ('rehearse schedule list' has all) or --file");
  if (options.file.empty()) return by_name(options);
  if (!options.name.empty() || options.ranks || options.microbatches || options.chunks)
    throw InputError("--file says all: leave out the name, --pp, --microbatches and --vpp");
  if (options.file == "-") return parse_schedule_csv(read_standard_input(), "<stdin>");
  return read_schedule_csv(options.file);
}

StageTimes times_of(const Options& options) {
  if (options.times.empty()) return {};
  std::vector<std::int64_t> steps;
  for (const std::string& word : options.times) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc{} && end == word.data() + word.size() && number >= 1 && number <= 100)
      steps.push_back(number);
  }
  if (steps.size() != 3 || options.times.size() != 3)
    throw InputError(
        fmt::format("--times {}: three whole numbers from 1 to 100, of F, I and W, e.g. 1,1,1",
                    fmt::join(options.times, ",")));
  return {.forward = steps[0], .backward_input = steps[1], .backward_weight = steps[2]};
}

// Where each rank waits: for its first work, within its work, and after it.
std::string idle_table(const Schedule& schedule, const StageTimes& times) {
  const ScheduleTimes when = step_times(schedule, times);
  std::string text =
      fmt::format("\n{:<12} {:>8} {:>8} {:>8}\n", "idle steps", "before", "between", "after");
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::int64_t first = when.makespan, last = 0, busy = 0;
    for (std::size_t cell = 0; cell < schedule.ranks[rank].size(); ++cell) {
      const std::optional<Action>& action = schedule.ranks[rank][cell];
      if (!action) continue;
      const std::int64_t begin = when.begin[rank][cell], length = times.of(action->kind);
      first = std::min(first, begin);
      last = std::max(last, begin + length);
      busy += length;
    }
    text += fmt::format("rank {:<7} {:>8} {:>8} {:>8}\n", rank, first, last - first - busy,
                        when.makespan - last);
  }
  return text;
}

void show(const Options& options) {
  constexpr std::int64_t narrowest = 20, widest = 10'000;
  if (options.columns < narrowest || options.columns > widest)
    throw InputError(
        fmt::format("--columns {} is not between {} and {}", options.columns, narrowest, widest));
  const StageTimes times = times_of(options);
  const Schedule schedule = schedule_of(options);
  const auto ranks = static_cast<std::int64_t>(schedule.ranks.size());
  const std::int64_t steps = step_times(schedule, times).makespan;
  constexpr std::int64_t most = 100'000'000;
  if (steps > most / ranks)
    throw InputError(fmt::format(
        "{} ranks × {} steps are too many to draw; 'schedule export' writes them", ranks, steps));
  if (!options.figure.empty())
    write_output(options.figure,
                 schedule_figure(schedule, times, Time::picoseconds(1'000'000)).svg);
  if (options.figure == "-") return;
  fmt::print("{}{}", draw_schedule(schedule, times, static_cast<std::size_t>(options.columns)),
             options.idle ? idle_table(schedule, times) : "");
}

void export_csv(const Options& options) {
  if (options.idle && options.communication)
    throw InputError("--idle is for compute alone: PyTorch's files with communication have none");
  if (!options.idle && !options.times.empty())
    throw InputError("--times says how many cells idle steps are: add --idle");
  const StageTimes times = times_of(options);
  const Schedule schedule = schedule_of(options);
  if (options.communication)
    return write_output(options.output, write_schedule_csv(schedule, CsvFormat::compute_comms));
  write_output(options.output,
               write_schedule_csv(options.idle ? with_idle_steps(schedule, times) : schedule));
}

}  // namespace

void add_schedule_command(Command& program) {
  Command command =
      program.add("schedule", "The order of work in a pipeline: names, drawings, PyTorch's CSV");
  command.needs_another();
  command.add("list", "The schedules by name, a line each").does(list);
  const auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* help, void (*action)(const Options&)) {
    Command sub = command.add(name, help);
    sub.option("NAME", &options->name, "Of the list; in any case, with or without dashes");
    sub.option("--pp", &options->ranks, "Ranks of the pipeline");
    sub.option("--microbatches", &options->microbatches, "Of one step");
    sub.option("--vpp", &options->chunks, "Stages on each rank (default: 1, of a V 2)");
    sub.option("--file", &options->file,
               "A schedule in PyTorch's CSV instead; - is standard input");
    sub.option("--times", &options->times,
               "Steps that a forward and the halves of a backward take, F,I,W (default: 1,1,1)",
               {.word_by_word = true, .delimiter = ','});
    sub.does([options, action] { action(*options); });
    return sub;
  };
  Command shown = add("show", "Draw it as if stages were alike and messages free", show);
  shown.flag("--idle", options->idle, "Also the idle steps of each rank");
  shown.option("--columns", &options->columns, "Width; longer ones are letters without numbers",
               {.shows_default = true});
  shown.option("--figure", &options->figure,
               "Write a figure, too (.svg), of 1 us a step; -: only that");
  Command exported = add("export", "Write it as PyTorch's CSV, a row for each rank", export_csv);
  exported.flag("--communication", options->communication,
                "With sends, receives and what FSDP does, as PyTorch 2.15 adds them");
  exported.flag("--idle", options->idle, "With an empty cell for each idle step");
  exported.option("-o,--output", &options->output, "File to write (default: standard output)");
}

}  // namespace rehearse
