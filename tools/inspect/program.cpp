// `rehearse program show|verify|expand|run FILE`: a Program in its text form, looked at, proved
// free of races, its collectives expanded, simulated.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/explain.hpp"
#include "sim/program/program_text.hpp"
#include "sim/program/verify.hpp"
#include "strategies/collectives/decide.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/engine.hpp"
#include "tools/inspect/program_passes.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/trace_writer.hpp"
#include "topology/files/text_file.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string file, cluster, engine = "fast", algorithm = "auto", json, trace, trace_ranks, after;
  std::vector<std::string> sets;
  std::uint32_t op = UINT32_MAX;
  bool explain = false;
};

Program load(const Options& options) {
  return parse_program(read_text_file(options.file), options.file);
}

struct Summary {
  std::array<std::size_t, 4> ops{};  // by WorkKind
  std::size_t ranks = 0, edges = 0;
  Bytes size, wire;
};

Summary summarise(const Program& program) {
  Summary summary;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Op& op = program.ops()[i];
    ++summary.ops[static_cast<std::size_t>(op.kind)];
    summary.ranks = std::max(summary.ranks, index(op.rank) + 1);
    summary.edges += program.after(static_cast<OpId>(i)).size();
    if (op.kind == WorkKind::collective)
      for (const Rank rank : program.collective(op).group)
        summary.ranks = std::max(summary.ranks, index(rank) + 1);
    if (op.kind != WorkKind::transfer) continue;
    summary.size += program.transfer(op).size;
    summary.wire += program.transfer(op).wire;
  }
  for (const Connection& connection : program.connections()) {
    summary.ranks =
        std::max({summary.ranks, index(connection.source) + 1, index(connection.target) + 1});
    for (const Rank rank : connection.others)
      summary.ranks = std::max(summary.ranks, index(rank) + 1);
  }
  return summary;
}

void show(const Options& options) {
  if (!options.after.empty()) {
    fmt::print("{}", to_text(program_after(options.after, options.file, options.sets)));
    return;
  }
  if (!options.sets.empty()) throw InputError("--set changes a scenario: it requires --after");
  const Program program = load(options);
  const Summary summary = summarise(program);
  const auto count = [&](WorkKind kind) { return summary.ops[static_cast<std::size_t>(kind)]; };
  fmt::print("ops            {}\n", program.size());
  fmt::print("  transfers    {}, {} of data, {} on the wire\n", count(WorkKind::transfer),
             readable(summary.size), readable(summary.wire));
  fmt::print("  computes     {}\n", count(WorkKind::compute));
  fmt::print("  collectives  {}\n", count(WorkKind::collective));
  fmt::print("  markers      {}\n", count(WorkKind::marker));
  fmt::print("edges          {}\n", summary.edges);
  fmt::print("ranks          {}\n", summary.ranks);
  fmt::print("connections    {}{}\n", program.connections().size(),
             program.folded.empty() ? "" : ", folded: each stands for many");
}

void verify_file(const Options& options) {
  const Program program = load(options);
  if (!program.folded.empty())
    throw InputError({options.file},
                     "the program is folded, and says nothing about the ranks it leaves out; "
                     "verify the whole one");
  const std::vector<Race> races = find_races(program);
  if (races.empty()) {
    fmt::print("no race in {} ops\n", program.size());
    return;
  }
  for (std::size_t i = 1; i < races.size(); ++i)
    fmt::print("race: {}\n", describe(program, races[i]));
  throw CheckFailed(fmt::format("race: {}", describe(program, races.front())));
}

bool has_collectives(const Program& program) {
  return std::any_of(program.ops().begin(), program.ops().end(),
                     [](const Program::Op& op) { return op.kind == WorkKind::collective; });
}

// What a machine must have for the program; whether it can finish is the engine's business.
void check_fits(const Program& program, const Topology& topology, const std::string& file) {
  // Whoever waits for a later op deadlocks, and the engine names the cycle; an expansion cannot.
  const bool forward_edges = !has_collectives(program);
  const Surroundings around{topology.rank_count(), topology.links().size(), forward_edges};
  std::vector<Problem> problems;
  for (const std::string& problem : structural_problems(program, around))
    problems.push_back({{file}, problem});
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// The file's program as the engines take it: its collectives in transfers.
Program load_expanded(const Options& options, const Topology& topology, Routing& routing) {
  Program program = load(options);
  check_fits(program, topology, options.file);
  if (!has_collectives(program)) return program;
  return expand_collectives(program, routing, {.algorithm = options.algorithm});
}

void expand(const Options& options) {
  const Topology topology = load_cluster(options.cluster);
  Routing routing{topology};
  fmt::print("{}", to_text(load_expanded(options, topology, routing)));
}

nlohmann::ordered_json to_json(const Options& options, const Program& program,
                               const Topology& topology, const Timeline& timeline) {
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  const double seconds = timeline.makespan.seconds().count();
  for (std::size_t l = 0; l < timeline.link_bytes.size(); ++l) {
    const auto bytes = timeline.link_bytes[l].count();
    if (bytes == 0) continue;
    const Link& link = topology.links()[l];
    links.push_back({{"link", l},
                     {"source", topology[link.source].name},
                     {"target", topology[link.target].name},
                     {"bytes", bytes},
                     {"load", static_cast<double>(bytes) / (link.bandwidth.count() * seconds)}});
  }
  nlohmann::ordered_json path = nlohmann::ordered_json::array();
  for (const OpId id : critical_path(timeline)) path.push_back(index(id));
  return {{"program", options.file},
          {"cluster", options.cluster},
          {"engine", options.engine},
          {"makespan_us", seconds * 1e6},
          {"makespan_ps", timeline.makespan.ps()},
          {"ops", program.size()},
          {"transfers", program.transfer_count()},
          {"events", timeline.events},
          {"fingerprint", fmt::format("{:016x}", fingerprint(timeline))},
          {"critical_path", path},
          {"links", links}};
}

void run(const Options& options) {
  const Topology topology = load_cluster(options.cluster);
  Routing routing{topology};
  const Program program = load_expanded(options, topology, routing);
  if (options.json == "-" && options.trace == "-")
    throw InputError("--json and --trace cannot both go to standard output");
  if (options.op != UINT32_MAX && options.op >= program.size())
    throw InputError(fmt::format("--op {}: the program has {} ops", options.op, program.size()));
  TraceOptions trace;
  if (!options.trace_ranks.empty())
    trace.ranks = parse_ranks(options.trace_ranks, topology.rank_count());
  const Roofline cost;
  const Timeline timeline = make_engine(options.engine, routing, cost)->run(program);
  const Paths paths{program, routing};
  // With results on standard output, the words go where they do not get in the way.
  const bool quiet = options.json == "-" || options.trace == "-";
  std::FILE* const words = quiet ? stderr : stdout;
  fmt::print(words, "makespan {}\n", readable(timeline.makespan));
  fmt::print(words, "{}{}", explain_critical_path(program, timeline),
             explain_links(timeline, topology));
  if (options.op != UINT32_MAX)
    fmt::print(words, "{}",
               explain_op(program, timeline, paths, topology, static_cast<OpId>(options.op)));
  if (options.explain)
    for (const OpId id : critical_path(timeline))
      fmt::print(words, "{}", explain_op(program, timeline, paths, topology, id));
  if (!options.json.empty())
    write_output(options.json,
                 to_json(options, program, topology, timeline)
                         .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                     "\n");
  if (options.trace.empty()) return;
  OutputFile out{options.trace};
  write_trace(out, program, timeline, paths, topology, trace);
  out.finish();
}

}  // namespace

void add_program_command(Command& program) {
  Command command =
      program.add("program", "Look at a program file, prove it free of races, simulate it");
  command.needs_another();
  // Callbacks outlive this function; each holds its share of the options.
  const auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* help, void (*action)(const Options&)) {
    Command sub = command.add(name, help);
    sub.option("FILE", &options->file, "A program in its text form", {.required = true});
    sub.does([options, action] { action(*options); });
    return sub;
  };
  Command counted = add("show", "Count its ops, ranks and bytes; or write a scenario's step", show);
  counted.option("--after", &options->after,
                 "FILE is a scenario: write its program as it is after a pass: " + pass_names());
  counted.option("--set", &options->sets, "Change a key of the scenario; may be repeated",
                 {.word_by_word = true});
  add("verify", "Prove that no two ops race, or name them", verify_file);
  Command sub = add("run", "Simulate it on a cluster", run);
  for (Command each : {sub, add("expand", "Write its collectives as transfers", expand)}) {
    each.option("--cluster", &options->cluster, "A name of the catalog, or a file",
                {.required = true});
    each.option("--algorithm", &options->algorithm, "For its collectives", {.shows_default = true});
  }
  sub.option("--engine", &options->engine, "fast or simgrid", {.shows_default = true});
  sub.option("--json", &options->json, "Write the result as JSON; - is standard output");
  sub.option("--trace", &options->trace, "Write a trace for Perfetto (.json or .json.gz)");
  sub.option("--trace-ranks", &options->trace_ranks, "Which ranks it shows, as in 0-7,12");
  sub.option("--op", &options->op, "Say why this op ran when it did");
  sub.flag("--explain", options->explain, "Say so for every op of the critical path");
}

}  // namespace rehearse
