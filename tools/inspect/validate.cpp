// `rehearse validate FILE…`: every mistake of every file, or "ok".
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/program/program_text.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "strategies/placement/placement.hpp"
#include "strategies/predict/check_scenario.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "topology/files/text_file.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

namespace {

// A program says so in its first line, a scenario has tables of its own; everything else describes
// a machine, and the file's ending tells how.
bool is_program(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t word = line.find_first_not_of(" \t\r");
    if (word != line.npos && line[word] != '#')
      return line.substr(word).starts_with("rehearse program");
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

std::string validate_scenario(std::string_view text, const std::string& file) {
  const LoadedScenario loaded = parse_scenario(text, file);
  check_scenario(loaded);
  const Parallelism& p = loaded.scenario.parallelism;
  const Placement placement = place_ranks(p, loaded.topology.rank_count());
  const Batch batch = batch_of(loaded.scenario.training, placement.size(Dimension::data));
  return fmt::format("{}; {} ranks: tp {} × pp {} × cp {} × dp {}; {} micro-batches",
                     describe(loaded.workload), placement.world(), p.tensor, p.pipeline, p.context,
                     placement.size(Dimension::data), batch.microbatches);
}

std::string validate(const std::string& file) {
  const std::string text = file == "-" ? read_standard_input() : read_text_file(file);
  if (is_program(text)) {
    const Program program = parse_program(text, file);
    return fmt::format("program of {} ops", program.size());
  }
  if (is_scenario(text, file)) return validate_scenario(text, file);
  const Topology topology = file == "-" ? parse_cluster(text, "<stdin>") : load_cluster(file);
  return fmt::format("cluster of {} ranks, {} devices, {} links", topology.rank_count(),
                     topology.devices().size(), topology.links().size());
}

// The mistakes of one file must not hide those of the next, so they are gathered here.
void validate_all(const std::vector<std::string>& files) {
  std::vector<Problem> problems;
  for (const std::string& file : files) {
    try {
      fmt::print("{}: ok, {}\n", file, validate(file));
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

void add_validate_command(Command& program) {
  Command command = program.add(
      "validate", "Check scenario, cluster, topology and program files: every mistake, or ok");
  const auto files = std::make_shared<std::vector<std::string>>();
  command.option("FILE", files.get(), "Files to check; - for standard input", {.required = true});
  command.does([files] { validate_all(*files); });
}

}  // namespace rehearse
