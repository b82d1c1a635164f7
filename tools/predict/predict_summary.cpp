// The summary for people, from the model to the fingerprint.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/engine/explain.hpp"
#include "strategies/placement/placement.hpp"
#include "strategies/plan/imperfections.hpp"
#include "strategies/predict/ready_scenario.hpp"
#include "tools/cli/version.hpp"
#include "tools/output/chart.hpp"
#include "tools/predict/local_summary.hpp"
#include "tools/predict/predict_report.hpp"
#include "tools/predict/step_picture.hpp"

namespace rehearse {

namespace {

constexpr std::size_t page_width = 100;

// Bars too short to be seen leave a space behind.
std::string without_trailing_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
    out += c;
  }
  return out;
}

class Summary {
 public:
  explicit Summary(const PredictReport& report)
      : report_{report}, scenario_{report.loaded.scenario}, told_{report.answer.prediction} {}

  std::string text() {
    heading();
    figures();
    distribution();
    where_time_goes();
    memory();
    verdict();
    cost();
    footer();
    return without_trailing_spaces(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }
  double percent(Seconds part) const { return 100 * part.count() / told_.step.seconds().count(); }

  const Accelerator& device() const { return accelerator_of(report_.loaded.topology); }

  void heading() {
    const Topology& topology = report_.loaded.topology;
    if (!scenario_.title.empty()) put("{}\n", scenario_.title);
    if (!scenario_.question.empty()) put("{}\n", scenario_.question);
    if (!text_.empty()) put("\n");
    put("model    {}\n", describe(report_.loaded.workload));
    const std::size_t nodes = std::max<std::size_t>(topology.node_count(), 1);
    put("cluster  {}: {}, {}, {} each with {:.1f} GiB\n", topology.name,
        counted_noun(nodes, "node"), counted_noun(topology.rank_count(), "rank"),
        device().name.empty() ? "devices" : device().name, gibibytes(device().memory));
    put("layout   world {} = tp {} × pp {} × {}dp {}; {}\n", told_.world, told_.tensor,
        told_.pipeline, told_.context > 1 ? fmt::format("cp {} × ", told_.context) : "", told_.data,
        layout_words());
    put("batch    {}\n", batch_words());
    const std::string imperfection = describe(scenario_.imperfection);
    if (!imperfection.empty()) put("with     {}\n", imperfection);
    put("\n");
  }

  std::string layout_words() const {
    std::string words = "SPMD: every rank runs the same program";
    if (told_.pipeline > 1) {
      const std::size_t stages = stage_count(scenario_.parallelism);
      words = fmt::format("MPMD: {} stages, each with its own program ({})", stages,
                          scenario_.parallelism.schedule_csv.empty()
                              ? scenario_.parallelism.schedule
                              : scenario_.parallelism.schedule_csv);
    }
    if (told_.expert > 1) words += fmt::format("; ep {} out of dp", told_.expert);
    return words;
  }

  std::string batch_words() const {
    const Training& training = scenario_.training;
    std::string words = fmt::format("{} = micro-batch {} × {} × dp {}",
                                    counted_noun(whole(told_.samples), "sample"),
                                    training.micro_batch_size, told_.microbatches, told_.data);
    if (told_.tokens > 0)
      words += fmt::format(", {} tokens each", grouped(told_.tokens / told_.samples, 0));
    return words + fmt::format("; {}", to_string(training.precision));
  }
  static std::size_t whole(double number) { return static_cast<std::size_t>(std::llround(number)); }

  void row(std::string_view name, const std::string& value) {
    put("| {} | {} |\n", padded(name, 40), padded(value, 51));
  }

  void figures() {
    row("prediction of one step", "");
    put("|{:-<42}|{:-<53}|\n", "", "");
    const auto ms = [](Time time) { return grouped(time.seconds().count() * 1e3, 3); };
    row("elapsed time per iteration (ms)", ms(told_.step));
    row("8 of 10 published steps like it (ms)",
        fmt::format("{} to {}", ms(told_.low()), ms(told_.high())));
    for (const auto& [name, value] :
         local_rows(scenario_, report_.answer.step, report_.answer.timeline))
      row(name, value);
    row("throughput per GPU (TFLOP/s/GPU)",
        fmt::format("{:.1f}", told_.model_flops_per_gpu().count() * 1e-12));
    row("MFU", fmt::format("{:.1f} % of {:.5g} TFLOP/s, the device's {} peak", 100 * told_.mfu(),
                           told_.peak.count() * 1e-12, to_string(scenario_.training.precision)));
    const double world = static_cast<double>(told_.world);
    if (told_.tokens > 0) {
      row("tokens/s", grouped(told_.tokens_per_second(), 0));
      row("tokens/s/GPU (tps)", grouped(told_.tokens_per_second() / world, 1));
    }
    row("samples/s", grouped(told_.samples_per_second(), 2));
    row("bubble",
        fmt::format("{:.1f} % of the step, mean over ranks", 100 * told_.bubble_fraction()));
    row("exposed communication", exposed_words());
    row("memory per GPU", memory_words());
  }

  std::string exposed_words() const {
    constexpr std::string_view short_names[] = {"tp", "cp", "ep", "dp", "pp"};
    double all = 0;
    std::string by;
    for (std::size_t d = 0; d < dimension_count; ++d) {
      const Seconds time = told_.mean.exposed[d].seconds();
      all += time.count();
      if (time.count() > 0)
        by += fmt::format("{}{} {:.1f}", by.empty() ? "" : ", ", short_names[d], percent(time));
    }
    return fmt::format("{:.1f} % of the step{}", percent(Seconds{all}),
                       by.empty() ? "" : ": " + by);
  }

  const RoleReport& fullest() const {
    return *std::max_element(
        told_.roles.begin(), told_.roles.end(),
        [](const RoleReport& a, const RoleReport& b) { return a.peak_bytes < b.peak_bytes; });
  }
  std::string memory_words() const {
    const RoleReport& role = fullest();
    if (role.capacity == Bytes{0}) return fmt::format("{:.1f} GiB", gibibytes(role.peak_bytes));
    return fmt::format("{:.1f} of {:.1f} GiB, {}", gibibytes(role.peak_bytes),
                       gibibytes(role.capacity), told_.fits ? "fits" : "DOES NOT FIT");
  }

  void where_time_goes() {
    put("\nwhere the step goes (mean over {}):\n", counted_noun(told_.world, "rank"));
    double longest = 0;
    for (const BreakdownPart& part : report_.parts) longest = std::max(longest, part.time.count());
    for (const BreakdownPart& part : report_.parts)
      put("  {:<17} {:>12} ms {:>5.1f} % {}\n", part.name, grouped(part.time.count() * 1e3, 3),
          percent(part.time), bar(part.time.count() / longest, 48));
    const std::string picture =
        pipeline_picture(report_.answer.step, report_.answer.timeline, page_width);
    if (!picture.empty()) put("\n{}", picture);
  }

  void memory() {
    const RoleReport& most = fullest();
    const double whole = std::max(static_cast<double>(most.capacity.count()),
                                  static_cast<double>(most.peak_bytes.count()));
    put("\nmemory of {} at its peak{}:\n", most.name == "all ranks" ? "every rank" : most.name,
        most.capacity > Bytes{0} ? fmt::format(", against {:.1f} GiB", gibibytes(most.capacity))
                                 : "");
    for (std::size_t k = 0; k < memory_kinds; ++k)
      if (most.peak[k] > Bytes{0})
        put("  {:<17} {:>12.3f} GiB {} {}\n", kind_name(static_cast<MemoryKind>(k)),
            gibibytes(most.peak[k]), told_.fits ? " " : "!",
            bar(static_cast<double>(most.peak[k].count()) / whole, 52));
    if (told_.roles.size() > 1) roles();
  }

  static std::string kind_name(MemoryKind kind) {
    const bool activation = kind >= MemoryKind::input && kind <= MemoryKind::loss;
    return fmt::format("{}{}", activation ? "act. " : "", to_string(kind));
  }

  // The first ones, the last one, and the fullest wherever it stands.
  void roles() {
    constexpr std::size_t most_shown = 8;
    put("\n  {:<24} {:>7} {:>12} {:>9} {:>9} {:>11}\n", "role", "ranks", "compute", "exposed",
        "bubble", "peak memory");
    const RoleReport* const most = &fullest();
    std::size_t hidden = 0;
    for (std::size_t r = 0; r < told_.roles.size(); ++r) {
      const RoleReport& role = told_.roles[r];
      if (r >= most_shown && r + 1 != told_.roles.size() && &role != most) {
        ++hidden;
        continue;
      }
      if (hidden > 0) put("  … {} more\n", std::exchange(hidden, 0));
      Time exposed;
      for (const Time time : role.time.exposed) exposed += time;
      put("  {} {:>7} {:>9} ms {:>7.1f} % {:>7.1f} % {:>7.2f} GiB{}\n", padded(role.name, 24),
          role.ranks, grouped(role.time.compute.seconds().count() * 1e3, 1),
          percent(exposed.seconds()), percent(role.time.bubble.seconds()),
          gibibytes(role.peak_bytes), &role == most ? " ◀ most" : "");
    }
  }

  void verdict() {
    put("\nverdict\n");
    for (const std::string& sentence : report_.verdict.sentences) put("{}", wrapped(sentence));
    const Verdict& verdict = report_.verdict;
    if (verdict.tried == 0) return;
    if (verdict.better.empty()) {
      put("{}", wrapped(fmt::format("Tried {}: {}.", counted_noun(verdict.tried, "change"),
                                    verdict.makes_it_fit ? "none of them fits"
                                                         : "none is faster by 1 % and fits")));
      return;
    }
    put("  Tried {}; {}:\n", counted_noun(verdict.tried, "change"),
        verdict.makes_it_fit ? "these fit, the fastest first" : "try, the best first");
    for (const Neighbour& neighbour : verdict.better) put("    {}\n", describe(neighbour, told_));
  }

  static std::string wrapped(const std::string& sentence) {
    std::string text, line = " ";
    for (std::size_t at = 0; at < sentence.size();) {
      const std::size_t end = std::min(sentence.find(' ', at), sentence.size());
      const std::string word = sentence.substr(at, end - at);
      if (column_count(line) + 1 + column_count(word) > page_width - 2) {
        text += line + "\n";
        line = " ";
      }
      line += " " + word;
      at = end + 1;
    }
    return text + line + "\n";
  }

  std::string seed_words() const {
    const Imperfection& imperfection = scenario_.imperfection;
    if (!told_.is_drawn) return "none (nothing is random)";
    if (imperfection.seeds == 1) return fmt::to_string(imperfection.seed);
    return fmt::format("{} (and up to {} for the distribution)", imperfection.seed,
                       imperfection.seed + imperfection.seeds - 1);
  }

  void distribution() {
    if (report_.average)
      put("\nstep time of the average update, {} (ms): {}\n", report_.average->words,
          grouped(report_.average->step.seconds().count() * 1e3, 3));
    if (!report_.times) return;
    const StepTimes& times = *report_.times;
    const auto ms = [](Time time) { return grouped(time.seconds().count() * 1e3, 3); };
    put("\nstep time over {} (ms): mean {}, p50 {}, p90 {}, p99 {}, min {}, max {}\n",
        counted_noun(times.steps.size(), "seed"), ms(times.mean()), ms(times.quantile(0.5)),
        ms(times.quantile(0.9)), ms(times.quantile(0.99)), ms(times.quantile(0)),
        ms(times.quantile(1)));
  }

  void cost() {
    if (!report_.cost) return;
    const TrainingCost& cost = *report_.cost;
    const bool is_short = cost.days < 0.1;
    put("\nthe whole training: {} steps, {} {}, {} GPU-hours", grouped(cost.steps, 0),
        grouped(is_short ? cost.days * 24 * 60 : cost.days, 2), is_short ? "minutes" : "days",
        grouped(cost.gpu_hours, 0));
    if (cost.price) put(", {} {}", grouped(*cost.price, 0), cost.currency);
    put("\n{}", scaling_words(cost));
  }

  void footer() {
    const Prediction::Simulation& simulation = told_.simulation;
    if (report_.reference)
      put("\nthe same step in {}: {} ms ({:+.3f} %), {} ops\n", report_.engine,
          grouped(report_.reference->step.seconds().count() * 1e3, 3),
          percent(report_.reference->step.seconds()) - 100,
          grouped(static_cast<std::int64_t>(report_.reference->ops)));
    put("\nscenario {}, seed {}, rehearse {}, engine {}\n", fingerprint(scenario_), seed_words(),
        version(), report_.engine);
    put("{} ops simulated in {:.3f} s; calibration: {}\n",
        grouped(static_cast<std::int64_t>(simulation.ops)), report_.wall,
        calibration_words(scenario_));
  }

  const PredictReport& report_;
  const Scenario& scenario_;
  const Prediction& told_;
  std::string text_;
};

}  // namespace

std::string summary(const PredictReport& report) { return Summary(report).text(); }

std::string explanation(const PredictReport& report) {
  constexpr std::size_t most = 20;
  const StepProgram& step = report.answer.step;
  std::string text;
  const Role& role = step.roles.front();
  const std::vector<KernelTime> kernels = kernel_times(step, report.answer.timeline, role);
  const double whole = report.answer.prediction.step.seconds().count();
  text += fmt::format("\nkernels of {} (rank {}), communication beside them too:\n", role.name,
                      index(role.rank));
  text += fmt::format("  {:<34} {:>9} {:>13} {:>12} {:>8}\n", "kernel", "calls", "total", "each",
                      "of step");
  for (std::size_t k = 0; k < std::min(most, kernels.size()); ++k) {
    const double seconds = kernels[k].time.seconds().count();
    text += fmt::format("  {:<34} {:>9} {:>10} ms {:>9} us {:>6.1f} %\n", kernels[k].name,
                        kernels[k].calls, grouped(seconds * 1e3, 2),
                        grouped(seconds * 1e6 / static_cast<double>(kernels[k].calls), 1),
                        100 * seconds / whole);
  }
  if (kernels.size() > most) text += fmt::format("  … {} more\n", kernels.size() - most);
  return text + "\n" + explain_critical_path(step.program, report.answer.timeline);
}

double gibibytes(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); }

}  // namespace rehearse
