// One reader for each format; all note their mistakes in one list.
#include "tools/accuracy/measured_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "tools/accuracy/measured_cells.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

// As in sim/workload/hf_config.cpp and sim/scenario/scenario_keys.cpp: beyond these nothing was
// ever built, and no product of them overflows.
constexpr std::size_t most_ranks = 1 << 20, most_micro = 1 << 20;
constexpr std::int64_t most_layers = 100'000, widest = 1 << 20, most_words = 1 << 28,
                       most_tokens = 1 << 30, most_bytes = std::int64_t{1} << 50,
                       most_samples = std::int64_t{1} << 32, widest_gemm = 1 << 30;

MeasuredHardware read_hardware(MeasuredCells& cells) {
  MeasuredHardware h;
  h.gpu = cells.text("gpu");
  h.gpus_per_node = cells.count("gpus_per_node", 1, most_ranks);
  h.nics_per_node = cells.count("nics_per_node", 0, 4096);
  h.nic_gbps = cells.amount("nic_gbps");
  h.fabric = cells.text("fabric");
  h.intra = cells.text("intra");
  return h;
}

// Where a file counts GPUs and not nodes.
void set_nodes(MeasuredHardware& hardware, std::size_t gpus, MeasuredCells& cells) {
  if (gpus % hardware.gpus_per_node != 0)
    cells.complain(
        "gpus", fmt::format("{} are no whole number of nodes of {}", gpus, hardware.gpus_per_node));
  hardware.nodes = std::max<std::size_t>(1, gpus / hardware.gpus_per_node);
}

CollectiveMeasured read_collective(MeasuredCells& cells) {
  CollectiveMeasured row;
  row.hardware = read_hardware(cells);
  row.hardware.nodes = cells.count("nodes", 1, most_ranks);
  row.library_version = cells.note("library_version");
  row.collective = cells.word("collective", {"all_reduce", "all_gather", "reduce_scatter",
                                             "all_to_all", "broadcast", "reduce", "send_recv"});
  row.algorithm = cells.text("algorithm");
  row.protocol = cells.text("protocol");
  row.launch = cells.note("launch");
  row.size_bytes = cells.size("size_bytes", 1, most_bytes);
  row.time_us = cells.positive("time_us");
  row.noisy = cells.maybe_flag("noisy").value_or(false);
  return row;
}

void read_model(TrainingMeasured& row, MeasuredCells& cells) {
  row.model = cells.text("model");
  row.model_type = cells.word("model_type", {"gpt", "llama", "moe"});
  row.layers = cells.size("layers", 1, most_layers);
  row.hidden = cells.size("hidden", 1, widest);
  row.heads = cells.size("heads", 1, widest);
  row.kv_heads = cells.size("kv_heads", 1, widest);
  row.ffn_hidden = cells.size("ffn_hidden", 1, widest * 16);
  row.vocab = cells.size("vocab", 1, most_words);
  row.seq_len = cells.size("seq_len", 1, most_tokens);
  row.experts = cells.size("experts", 0, 4096);
  row.top_k = cells.size("top_k", 0, 4096);
  if (row.hidden % row.heads != 0)
    cells.complain("heads",
                   fmt::format("hidden {} is not a multiple of {} heads", row.hidden, row.heads));
  if (row.heads % row.kv_heads != 0)
    cells.complain("kv_heads", fmt::format("{} heads are not a multiple of {} key-value heads",
                                           row.heads, row.kv_heads));
  if (row.top_k > row.experts)
    cells.complain("top_k", fmt::format("{} of {} experts", row.top_k, row.experts));
  if (row.model_type == "moe" && row.top_k == 0)
    cells.complain("top_k", "a moe needs experts and top_k above 0");
}

void read_layout(TrainingMeasured& row, MeasuredCells& cells) {
  row.gpus = cells.count("gpus", 1, most_ranks);
  set_nodes(row.hardware, row.gpus, cells);
  row.tp = cells.count("tp", 1, most_ranks);
  row.pp = cells.count("pp", 1, most_ranks);
  row.dp = cells.count("dp", 1, most_ranks);
  row.cp = cells.count("cp", 1, most_ranks);
  row.ep = cells.count("ep", 1, most_ranks);
  row.vpp = cells.count("vpp", 1, most_ranks);
  // In floating point: four of the largest do not fit 64 bits.
  const double product = static_cast<double>(row.tp) * static_cast<double>(row.pp) *
                         static_cast<double>(row.dp) * static_cast<double>(row.cp);
  if (product != static_cast<double>(row.gpus))
    cells.complain("gpus", fmt::format("tp {} × pp {} × dp {} × cp {} = {:.0f}, not {}", row.tp,
                                       row.pp, row.dp, row.cp, product, row.gpus));
  row.micro_batch = cells.count("micro_batch", 1, most_micro);
  row.global_batch = cells.count("global_batch", 1, static_cast<std::size_t>(most_samples));
  row.schedule = cells.word("schedule", {"none", "1f1b", "interleaved", "gpipe"});
  row.recompute = cells.word("recompute", {"none", "selective", "full"});
  row.sequence_parallel = cells.flag("sequence_parallel");
  row.flash_attention = cells.maybe_flag("flash_attention");
  row.zero_stage = cells.count("zero_stage", 0, 3);
  row.zero_shard_ranks = cells.count("zero_shard_ranks", 1, most_ranks);
  row.overlap_grad_reduce = cells.maybe_flag("overlap_grad_reduce");
  row.overlap_param_gather = cells.maybe_flag("overlap_param_gather");
  row.tp_overlap = cells.maybe_flag("tp_overlap");
}

TrainingMeasured read_training(MeasuredCells& cells) {
  TrainingMeasured row;
  row.hardware = read_hardware(cells);
  read_model(row, cells);
  read_layout(row, cells);
  row.precision = cells.text("precision");
  row.framework = cells.text("framework");
  row.variant = cells.note("variant");
  row.step_time_s = cells.maybe_positive("step_time_s");
  row.oom = cells.maybe_flag("oom");
  if (!row.step_time_s && row.oom != true)
    cells.complain("step_time_s", "is empty, and oom is not 1: nothing was measured");
  return row;
}

DataParallelMeasured read_data_parallel(MeasuredCells& cells) {
  DataParallelMeasured row;
  row.hardware = read_hardware(cells);
  row.gpus = cells.count("gpus", 1, most_ranks);
  set_nodes(row.hardware, row.gpus, cells);
  row.model = cells.text("model");
  row.precision = cells.text("precision");
  row.batch_per_gpu = cells.count("batch_per_gpu", 1, most_micro);
  row.grad_accum = cells.count("grad_accum", 1, 1 << 12);
  row.seq_len = cells.count("seq_len", 0, static_cast<std::size_t>(most_tokens));
  row.communication =
      cells.word("communication", {"nccl_all_reduce", "parameter_server", "gloo", "none"});
  row.step_time_s = cells.positive("step_time_s");
  row.framework = cells.text("framework");
  row.series = cells.note("series");
  return row;
}

KernelMeasured read_kernel(MeasuredCells& cells) {
  KernelMeasured row;
  row.hardware.gpu = cells.text("gpu");
  row.hardware.gpus_per_node = 2;  // for copies from one to another
  row.kind = cells.word("kind", {"gemm", "attention", "bandwidth", "copy", "launch"});
  row.precision = cells.text("precision");
  row.m = cells.maybe_size("m", widest_gemm);
  row.n = cells.maybe_size("n", widest_gemm);
  row.k = cells.maybe_size("k", widest_gemm);
  row.batch = cells.maybe_size("batch", widest_gemm);
  row.bytes = cells.maybe_size("bytes", most_bytes);
  row.time_us = cells.maybe_positive("time_us");
  row.tflops = cells.maybe_positive("tflops");
  row.gbps = cells.maybe_positive("gbps");
  row.op = cells.note("op");
  if (!row.time_us && !row.gbps) cells.complain("time_us", "is empty, and so is gbps");
  return row;
}

constexpr std::array<std::string_view, 15> collective_columns{
    "case_id",  "gpu",        "nodes",   "gpus_per_node", "nics_per_node",
    "nic_gbps", "fabric",     "intra",   "collective",    "algorithm",
    "protocol", "size_bytes", "time_us", "noisy",         "source"};
constexpr std::array<std::string_view, 41> training_columns{"case_id",
                                                            "model",
                                                            "model_type",
                                                            "layers",
                                                            "hidden",
                                                            "heads",
                                                            "kv_heads",
                                                            "ffn_hidden",
                                                            "vocab",
                                                            "seq_len",
                                                            "gpu",
                                                            "gpus",
                                                            "gpus_per_node",
                                                            "nics_per_node",
                                                            "nic_gbps",
                                                            "fabric",
                                                            "intra",
                                                            "precision",
                                                            "tp",
                                                            "pp",
                                                            "dp",
                                                            "cp",
                                                            "ep",
                                                            "vpp",
                                                            "micro_batch",
                                                            "global_batch",
                                                            "schedule",
                                                            "recompute",
                                                            "experts",
                                                            "top_k",
                                                            "flash_attention",
                                                            "sequence_parallel",
                                                            "zero_stage",
                                                            "zero_shard_ranks",
                                                            "overlap_grad_reduce",
                                                            "overlap_param_gather",
                                                            "step_time_s",
                                                            "oom",
                                                            "framework",
                                                            "sweep",
                                                            "source"};
constexpr std::array<std::string_view, 17> data_parallel_columns{
    "case_id",  "model",         "gpu",         "gpus",      "gpus_per_node", "nics_per_node",
    "nic_gbps", "fabric",        "intra",       "precision", "batch_per_gpu", "grad_accum",
    "seq_len",  "communication", "step_time_s", "framework", "source"};
constexpr std::array<std::string_view, 13> kernel_columns{
    "case_id", "kind",  "gpu",     "precision", "m",  "n",     "k",
    "batch",   "bytes", "time_us", "gbps",      "op", "source"};

// Each known by two columns that no other has.
struct Format {
  std::string_view name, first, second;
  std::span<const std::string_view> columns;
  decltype(MeasuredRow::what) (*read)(MeasuredCells&);
};
constexpr std::array<Format, 4> formats{{
    {"collectives", "collective", "size_bytes", collective_columns,
     [](MeasuredCells& cells) -> decltype(MeasuredRow::what) { return read_collective(cells); }},
    {"training", "micro_batch", "global_batch", training_columns,
     [](MeasuredCells& cells) -> decltype(MeasuredRow::what) { return read_training(cells); }},
    {"data_parallel", "batch_per_gpu", "grad_accum", data_parallel_columns,
     [](MeasuredCells& cells) -> decltype(MeasuredRow::what) { return read_data_parallel(cells); }},
    {"kernels", "kind", "gbps", kernel_columns,
     [](MeasuredCells& cells) -> decltype(MeasuredRow::what) { return read_kernel(cells); }},
}};

const Format& format_of(const CsvTable& table, const std::string& file) {
  const auto has = [&](std::string_view column) {
    return std::find(table.columns.begin(), table.columns.end(), column) != table.columns.end();
  };
  for (const Format& format : formats)
    if (has(format.first) && has(format.second)) return format;
  std::string known;
  for (const Format& format : formats)
    known += fmt::format("{}{} ({}, {})", known.empty() ? "" : ", ", format.name, format.first,
                         format.second);
  throw InputError({file, 1, 1}, "its columns are of no known format; one has " + known +
                                     " among others: see scenarios/published/README.md");
}

// What one compares with: collectives have no studies, so a machine and a collective are one.
std::string sweep_of(const MeasuredRow& row, const MeasuredCells& cells) {
  if (const auto* c = std::get_if<CollectiveMeasured>(&row.what))
    return fmt::format("{} {}x{} {} {} {}", c->hardware.gpu, c->hardware.nodes,
                       c->hardware.gpus_per_node,
                       c->hardware.fabric == "none" ? c->hardware.intra : c->hardware.fabric,
                       c->collective, c->algorithm);
  if (const auto* k = std::get_if<KernelMeasured>(&row.what))
    return fmt::format("{} {} {}", k->kind, k->hardware.gpu, k->precision);
  return cells.note("sweep");
}

}  // namespace

const MeasuredHardware& hardware_of(const MeasuredRow& row) {
  return std::visit([](const auto& what) -> const MeasuredHardware& { return what.hardware; },
                    row.what);
}

MeasuredFile parse_measured(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  const CsvTable table = parse_csv(text, file);
  const Format& format = format_of(table, file);
  MeasuredCells cells{table, file};
  std::vector<Problem> missing;
  for (const std::string_view column : format.columns)
    if (!cells.has_column(column))
      missing.push_back(
          {{file, 1, 1},
           fmt::format("column '{}' is missing; a {} file needs it", column, format.name)});
  if (!missing.empty()) throw InputError(std::move(missing));
  MeasuredFile measured{file, std::string{format.name}, {}};
  for (const CsvTable::Row& row : table.rows) {
    cells.go_to(row);
    MeasuredRow read{cells.text("case_id"), {}, cells.note("source"), row.line, format.read(cells)};
    read.sweep = sweep_of(read, cells);
    measured.rows.push_back(std::move(read));
  }
  if (!cells.problems().empty()) throw InputError(std::move(cells.problems()));
  return measured;
}

MeasuredFile load_measured(const std::string& file) {
  if (file == "-") return parse_measured(read_standard_input(), "standard input");
  return parse_measured(read_text_file(file), file);
}

}  // namespace rehearse
