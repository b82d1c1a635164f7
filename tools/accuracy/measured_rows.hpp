// Published measurements as values: the four formats of scenarios/published/FORMAT.md, one struct
// for a row of each. A file is recognised by its columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rehearse {

/// What a row says of its machine, in the files' own words.
struct MeasuredHardware {
  std::string gpu, fabric = "none", intra;
  std::size_t nodes = 1, gpus_per_node = 1, nics_per_node = 0;
  double nic_gbps = 0;
  friend bool operator==(const MeasuredHardware&, const MeasuredHardware&) = default;
  friend auto operator<=>(const MeasuredHardware&, const MeasuredHardware&) = default;
};

/// 0, 1, or nothing where the source does not say.
using MaybeFlag = std::optional<bool>;

struct CollectiveMeasured {
  MeasuredHardware hardware;
  std::string library_version, collective, algorithm, protocol, launch;
  std::int64_t size_bytes = 0;
  double time_us = 0;
  bool noisy = false;
};

struct TrainingMeasured {
  MeasuredHardware hardware;
  std::string model, model_type, precision, schedule, recompute, framework, variant;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn_hidden = 0, vocab = 0,
               seq_len = 0, experts = 0, top_k = 0;
  std::size_t gpus = 1, tp = 1, pp = 1, dp = 1, cp = 1, ep = 1, vpp = 1;
  std::size_t micro_batch = 1, global_batch = 1, zero_stage = 0, zero_shard_ranks = 1;
  bool sequence_parallel = false;
  MaybeFlag flash_attention, overlap_grad_reduce, overlap_param_gather, tp_overlap;
  std::optional<double> step_time_s;  // none: it ended out of memory
  MaybeFlag oom;
};

struct DataParallelMeasured {
  MeasuredHardware hardware;
  std::string model, precision, communication, framework, series;
  std::size_t gpus = 1, batch_per_gpu = 1, grad_accum = 1, seq_len = 0;
  double step_time_s = 0;
};

struct KernelMeasured {
  MeasuredHardware hardware;  // of one GPU: only its name is known
  std::string kind, precision, op;
  std::optional<std::int64_t> m, n, k, batch, bytes;
  std::optional<double> time_us, tflops, gbps;
};

struct MeasuredRow {
  std::string case_id, sweep, source;
  std::uint32_t line = 0;
  std::variant<CollectiveMeasured, TrainingMeasured, DataParallelMeasured, KernelMeasured> what;
};

const MeasuredHardware& hardware_of(const MeasuredRow& row);

struct MeasuredFile {
  std::string name;    // as the user wrote it
  std::string format;  // "collectives", "training", "data_parallel", "kernels"
  std::vector<MeasuredRow> rows;
};

/// Throws InputError with every mistake, each at its line.
MeasuredFile parse_measured(std::string_view text, const std::string& file);
/// Reads a file, or "-" for standard input.
MeasuredFile load_measured(const std::string& file);

}  // namespace rehearse
