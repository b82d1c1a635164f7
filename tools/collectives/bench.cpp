// `rehearse bench COLLECTIVE --cluster NAME|FILE`: what nccl-tests would print there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/explain.hpp"
#include "sim/program/program_text.hpp"
#include "sim/scenario/calibration.hpp"
#include "strategies/collectives/launch.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/cli/counts.hpp"
#include "tools/cli/engine.hpp"
#include "tools/collectives/bench_page.hpp"
#include "tools/measure/bench_host.hpp"
#include "tools/measure/cuda_backend.hpp"
#include "tools/output/bench_table.hpp"
#include "tools/output/chart.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"
#include "tools/output/trace_writer.hpp"
#include "topology/formats/cluster.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string collective, cluster, engine = "fast", detail = "folded", type = "float";
  std::string begin = "8", end = "8G", increment;
  double factor = 2;
  std::vector<std::string> algorithms, protocols;
  std::optional<std::int64_t> nodes, gpus_per_node, channels;
  std::int64_t root = 0;
  std::string json, csv, trace, trace_ranks, dump_program, report;
  bool explain = false, chart = false, quiet = false;
  std::string backend = "sim", calibration, library = "own";
  std::int64_t iterations = 20;
  std::string unused;  // flags of nccl-tests that mean nothing here
};

// Sizes are whole elements, as in nccl-tests: what is left over is left out.
std::vector<Bytes> sizes_of(const Options& options, const DataType& type) {
  const Bytes begin = parse_nccl_size(options.begin), end = parse_nccl_size(options.end);
  if (end < begin)
    throw InputError(fmt::format("-e {} is smaller than -b {}", options.end, options.begin));
  constexpr Bytes largest{std::int64_t{1} << 50};  // on any link of a machine, less than months
  if (end > largest) throw InputError(fmt::format("-e {} is more than 1024T", options.end));
  if (options.increment.empty() && !(options.factor > 1 && std::isfinite(options.factor)))
    throw InputError(fmt::format("-f {} must be a number above 1", options.factor));
  const Bytes step = options.increment.empty() ? Bytes{0} : parse_nccl_size(options.increment);
  if (!options.increment.empty() && step <= Bytes{0}) throw InputError("-i must be greater than 0");
  constexpr std::size_t most = 10'000;
  std::vector<Bytes> sizes;
  for (Bytes size = begin; size <= end;) {
    sizes.push_back(Bytes{size.count() / type.size.count() * type.size.count()});
    if (sizes.size() > most)
      throw InputError(fmt::format("more than {} sizes between -b and -e", most));
    const double grown = std::min(static_cast<double>(size.count()) * options.factor, 1e18);
    size = step > Bytes{0} ? size + std::min(step, largest)
                           : std::max(Bytes{static_cast<std::int64_t>(grown)}, size + Bytes{1});
  }
  return sizes;
}

std::vector<std::string> lower_case(std::vector<std::string> words) {
  for (std::string& word : words) {
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::tolower(c));
    });
    if (word == "nvlstree") word = "nvls_tree";
    if (word == "collnetdirect" || word == "collnetchain") word = "collnet";
  }
  if (words.size() == 1 && words.front() == "auto") words.clear();
  return words;
}

class Bench {
 public:
  explicit Bench(Options options)
      : options_{std::move(options)},
        kind_{collective_kind(options_.collective)},
        type_{data_type(options_.type)},
        sizes_{sizes_of(options_, type_)},
        topology_{machine()},
        routing_{topology_},
        engine_{make_engine(options_.engine, routing_, cost_)} {
    for (std::size_t r = 0; r < topology_.rank_count(); ++r)
      shape_.group.push_back(static_cast<Rank>(r));
    if (shape_.group.empty()) throw InputError(options_.cluster + ": the machine has no rank");
    if (options_.root < 0 || static_cast<std::size_t>(options_.root) >= shape_.group.size())
      throw InputError(
          fmt::format("--root {} is not one of the {} ranks", options_.root, shape_.group.size()));
    shape_.kind = kind_;
    shape_.channels = counted("--channels", options_.channels, 64).value_or(0);
    shape_.root = static_cast<std::uint32_t>(options_.root);
  }

  void run() {
    if (outputs_on_stdout() > 1)
      throw InputError(
          "standard output (-) is for one of --json, --csv, --trace, --dump-program, "
          "--report");
    // Opened before the work, so that a path that cannot be written is known at once.
    auto json_file = open(options_.json), csv_file = open(options_.csv);
    auto trace_file = open(options_.trace), program_file = open(options_.dump_program);
    auto page_file = open(options_.report);
    const auto start = std::chrono::steady_clock::now();
    CollectiveChooser chooser(shape_, routing_, wish());
    simulate(chooser);
    wall_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    print_left_out(chooser);
    if (trace_file || program_file) write_program(chooser, trace_file.get(), program_file.get());
    if (page_file) finish(page_file.get(), [&] { return page(chooser); });
    finish(json_file.get(), [&] { return json().dump(2) + "\n"; });
    finish(csv_file.get(), [&] { return csv(); });
  }

 private:
  static std::unique_ptr<OutputFile> open(const std::string& path) {
    return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
  }
  template <class Text>
  static void finish(OutputFile* file, Text&& text) {
    if (file == nullptr) return;
    file->write(text());
    file->finish();
  }

  ClusterOverrides overrides() const {
    return {counted("--nodes", options_.nodes), counted("--gpus-per-node", options_.gpus_per_node)};
  }

  Topology machine() const {
    Topology topology = load_cluster(options_.cluster, overrides());
    if (options_.calibration.empty()) return topology;
    return apply(load_calibration(options_.calibration), std::move(topology));
  }
  std::string calibration_words() const {
    return options_.calibration.empty() ? "no calibration"
                                        : "calibrated by " + options_.calibration;
  }

  CollectiveChooser::Wish wish() const {
    if (options_.detail != "folded" && options_.detail != "transfers")
      throw InputError(
          fmt::format("--detail {} is neither 'folded' nor 'transfers'", options_.detail));
    // Only our own engine knows what a folded program means.
    const bool whole = options_.detail == "transfers" || options_.engine != "fast";
    return {lower_case(options_.algorithms), lower_case(options_.protocols),
            whole ? Detail::transfers : Detail::folded, std::thread::hardware_concurrency()};
  }

  std::size_t node_count() const { return std::max<std::size_t>(topology_.node_count(), 1); }

  std::size_t outputs_on_stdout() const {
    std::size_t count = 0;
    for (const auto* path :
         {&options_.json, &options_.csv, &options_.trace, &options_.dump_program, &options_.report})
      count += *path == "-";
    return count;
  }
  bool table_goes_to_stdout() const { return outputs_on_stdout() == 0; }
  void print(const std::string& text) const {
    if (table_goes_to_stdout()) fmt::print("{}", text);
  }

  void simulate(CollectiveChooser& chooser) {
    print(table_header(fmt::format("{} on {}: {} in {}, simulated ({}); {}", options_.collective,
                                   topology_.name, counted_noun(topology_.rank_count(), "rank"),
                                   counted_noun(node_count(), "node"), options_.engine,
                                   calibration_words())));
    std::string explanations;
    Progress progress(options_.quiet);
    for (const Bytes size : sizes_) {
      progress.show(fmt::format("{} of {} sizes", rows_.size(), sizes_.size()));
      const std::vector<Candidate> candidates = chooser.at(size, *engine_);
      if (candidates.empty())
        throw InputError(
            fmt::format("at {} bytes every algorithm has too many transfers; choose "
                        "one with --algorithm",
                        size.count()));
      add_row(chooser, size, candidates);
      print(table_row(rows_.back(), kind_, type_, shape_.root, shape_.group.size()));
      if (options_.explain)
        explanations += explanation(chooser, size, candidates, *engine_, topology_);
    }
    print(table_footer(rows_));
    print(explanations);
    if (options_.chart) print(chart(rows_));
  }

  void add_row(const CollectiveChooser& chooser, Bytes size,
               const std::vector<Candidate>& candidates) {
    for (const Candidate& candidate : candidates) {
      transfers_ += candidate.result.transfers;
      events_ += candidate.result.events;
    }
    const Candidate& best = candidates.front();
    const double seconds = best.result.time.seconds().count();
    const double algbw = seconds > 0 ? static_cast<double>(size.count()) / seconds / 1e9 : 0;
    rows_.push_back({size, best.result.time, std::string(best.algorithm),
                     chooser.protocol_name(best.protocol), algbw,
                     algbw * bus_factor(kind_, shape_.group.size())});
  }

  void print_left_out(const CollectiveChooser& chooser) const {
    for (const LeftOut& left : chooser.left_out())
      if (options_.explain || left.reason.find("transfers") != std::string::npos)
        print(fmt::format("# not tried: {}: {}\n", left.algorithm, left.reason));
  }

  /// The winner's program at the last size, as a trace or as text.
  void write_program(CollectiveChooser& chooser, OutputFile* trace, OutputFile* text) {
    const BenchRow& row = rows_.back();
    CollectiveRehearsal rehearsal(algorithm(row.algorithm), shape_, routing_, Detail::transfers);
    if (rehearsal.most_transfers(row.size) > 3'000'000)
      throw InputError(
          fmt::format("a trace of {} transfers is too large to open; choose a smaller "
                      "machine",
                      rehearsal.most_transfers(row.size)));
    const auto protocol = chooser.at(row.size, *engine_).front().protocol;
    const Program program = launched_program(rehearsal, shape_.group, row.size, protocol);
    finish(text, [&] { return to_text(program); });
    if (trace == nullptr) return;
    const Timeline timeline = engine_->run(program);
    TraceOptions how;
    if (!options_.trace_ranks.empty())
      how.ranks = parse_ranks(options_.trace_ranks, topology_.rank_count());
    write_trace(*trace, program, timeline, Paths(program, routing_), topology_, how);
    trace->finish();
  }

  std::string page(CollectiveChooser& chooser) {
    BenchReport report{options_.collective, options_.engine, topology_, rows_, {}};
    const BenchRow& row = rows_.back();
    CollectiveRehearsal rehearsal(algorithm(row.algorithm), shape_, routing_, Detail::transfers);
    constexpr std::uint64_t most_drawn = 500'000;
    if (rehearsal.most_transfers(row.size) <= most_drawn) {
      const auto protocol = chooser.at(row.size, *engine_).front().protocol;
      BenchRun& run = report.last.emplace(
          BenchRun{launched_program(rehearsal, shape_.group, row.size, protocol), {}});
      run.timeline = engine_->run(run.program);
    }
    return bench_page(report);
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const BenchRow& row : rows_)
      rows.push_back({{"size_bytes", row.size.count()},
                      {"time_us", row.time.seconds().count() * 1e6},
                      {"algbw_GBs", row.algbw},
                      {"busbw_GBs", row.busbw},
                      {"algorithm", row.algorithm},
                      {"protocol", row.protocol}});
    return {{"collective", options_.collective},
            {"cluster", topology_.name},
            {"ranks", topology_.rank_count()},
            {"nodes", node_count()},
            {"calibration", options_.calibration.empty()
                                ? nlohmann::ordered_json(nullptr)
                                : nlohmann::ordered_json(options_.calibration)},
            {"rows", rows},
            {"simulation",
             {{"engine", options_.engine},
              {"transfers", transfers_},
              {"events", events_},
              {"wall_s", wall_},
              {"peak_memory_bytes", peak_memory_bytes()}}}};
  }

  std::string csv() const {
    std::string text = "size_bytes,time_us,algbw_GBs,busbw_GBs,algorithm,protocol\n";
    for (const BenchRow& row : rows_)
      text += fmt::format("{},{},{},{},{},{}\n", row.size.count(), row.time.seconds().count() * 1e6,
                          row.algbw, row.busbw, row.algorithm, row.protocol);
    return text;
  }

  Options options_;
  CollectiveKind kind_;
  DataType type_;
  std::vector<Bytes> sizes_;
  Topology topology_;
  Routing routing_;
  Roofline cost_;
  std::unique_ptr<Executor> engine_;
  CollectiveShape shape_;
  std::vector<BenchRow> rows_;
  std::uint64_t transfers_ = 0, events_ = 0;
  double wall_ = 0;
};

void run_for_real(const Options& options) {
  const DataType type = data_type(options.type);
  if (!options.cluster.empty() && (options.nodes || options.gpus_per_node))
    throw InputError("a real backend takes its ranks from --cluster or from -g, not from both");
  for (const auto& [given, name] : {std::pair{!options.trace.empty(), "--trace"},
                                    std::pair{!options.dump_program.empty(), "--dump-program"},
                                    std::pair{options.explain, "--explain"}})
    if (given) throw InputError(fmt::format("{} is for --backend sim", name));
  HostBench bench{.collective = options.collective,
                  .kind = collective_kind(options.collective),
                  .type = type,
                  .sizes = sizes_of(options, type),
                  .cluster = options.cluster,
                  .calibration = options.calibration,
                  .algorithms = lower_case(options.algorithms),
                  .library = options.library,
                  .json = options.json,
                  .csv = options.csv,
                  .quiet = options.quiet};
  bench.ranks = counted("-g", options.gpus_per_node, 1024).value_or(0);
  bench.channels = counted("--channels", options.channels, 64).value_or(0);
  bench.iterations = *counted("-n", options.iterations, 1'000'000);
  if (options.root < 0) throw InputError(fmt::format("--root {} is below 0", options.root));
  bench.root = static_cast<std::uint32_t>(options.root);
  if (options.backend == "host") return bench_on_host(bench);
  const CudaChoice choice = nccl_choice(options.library, options.algorithms, options.protocols);
  if (options.library == "nccl") bench.algorithms = {std::string{nccl_collective}};
  need_cuda().bench(std::move(bench), choice);
}

void run(const Options& options) {
  const bool is_mpi = options.library == "mpi" && options.backend == "host";
  const bool is_nccl = options.library == "nccl" && options.backend == "cuda";
  if (options.library != "own" && !is_mpi && !is_nccl)
    throw InputError("--library is own, or mpi with --backend host, or nccl with --backend cuda");
  if (options.backend == "host") return run_for_real(options);
  if (options.backend == "cuda") return need_cuda(), run_for_real(options);
  if (options.backend != "sim") {
    const std::vector<std::string> known{"sim", "host", "cuda"};
    const std::string hint = did_you_mean(options.backend, known);
    throw InputError(fmt::format("unknown backend '{}'{}", options.backend,
                                 hint.empty() ? "; there are sim, host and cuda" : hint));
  }
  if (options.cluster.empty())
    throw InputError("--cluster is required; see 'rehearse bench --help'");
  Bench(options).run();
}

}  // namespace

void add_bench_command(Command& program) {
  auto options = std::make_shared<Options>();
  Command bench = program.add("bench", "what nccl-tests would print on a cluster");
  bench.option("collective", &options->collective,
               "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all or "
               "send_recv",
               {.required = true});
  bench.option("--cluster", &options->cluster, "a catalog name or a file; see 'topo show'");
  bench.option("--backend", &options->backend,
               "sim; or host: run it here, on -g threads or the processes of mpirun; or cuda: "
               "on -g GPUs, or one for each process of mpirun");
  bench.option("--library", &options->library,
               "own (our schedules); mpi, with processes; nccl, on GPUs");
  bench.option("--nodes", &options->nodes, "instead of the cluster's own number");
  bench.option("--gpus-per-node,-g", &options->gpus_per_node, "likewise");
  bench.option("--calibration", &options->calibration, "a profile that calibrate wrote");
  bench.option("-b,--minbytes", &options->begin, "smallest size (8; 128M is 2^27)");
  bench.option("-e,--maxbytes", &options->end, "largest size (8G)");
  bench.option("-f,--stepfactor", &options->factor, "from one size to the next (2)");
  bench.option("-i,--stepbytes", &options->increment, "add this instead of multiplying");
  bench.option("-d,--datatype", &options->type, "float, half, bfloat16, …");
  bench.option("--algorithm", &options->algorithms, "auto, or names separated by commas",
               {.delimiter = ','});
  bench.option("--protocol", &options->protocols, "auto, ll, ll128, simple", {.delimiter = ','});
  bench.option("--channels", &options->channels, "rings or tree pairs side by side");
  bench.option("--root,-r", &options->root, "rank that broadcasts or receives the sum");
  bench.option("--engine", &options->engine, "fast (ours) or simgrid (the reference)");
  bench.option("--detail", &options->detail, "folded, or transfers: simulate each, unfolded");
  bench.option("--json,-J", &options->json, "write rows and simulation as JSON (- is stdout)");
  bench.option("--csv", &options->csv, "write the rows as CSV");
  bench.option("--trace", &options->trace, "write the last size as a Kineto trace (.json.gz)");
  bench.option("--trace-ranks", &options->trace_ranks, "only these ranks: 0-7,12");
  bench.option("--report", &options->report, "write a page with figures (.html)");
  bench.option("--dump-program", &options->dump_program, "write the last size's Program");
  bench.flag("--explain", options->explain, "every candidate's terms and limiting link");
  bench.flag("--chart", options->chart, "draw bus bandwidth over size");
  bench.flag("--quiet", options->quiet, "no progress line");
  bench.option("-n,--iters", &options->iterations, "collectives in a row, where it is real");
  for (const char* flag : {"-w,--warmup_iters", "-c,--check", "-o,--op"})
    bench.option(flag, &options->unused, "accepted for nccl-tests' sake; nothing to repeat here",
                 {.hidden = true});
  bench.does([options] { run(*options); });
}

}  // namespace rehearse
