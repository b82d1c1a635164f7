// What a user asks: a model, trained in a certain way, in parallel in a certain way. Plain data, in
// the words of Megatron and Hugging Face; sim/scenario/scenario_file.hpp reads it, strategies/
// lowers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/precision.hpp"
#include "sim/base/units.hpp"
#include "sim/workload/model_choice.hpp"

namespace rehearse {

enum class OptimizerKind : std::uint8_t { sgd, momentum, adam, lars, lamb };
enum class Recompute : std::uint8_t { none, selective, full };
enum class ContextExchange : std::uint8_t { all_gather, ring };
enum class Scaling : std::uint8_t { weak, strong };
enum class LossScaling : std::uint8_t { none, dynamic };
enum class Fusion : std::uint8_t { none, elementwise };
enum class Jitter : std::uint8_t { lognormal, gamma };
enum class CompressionKind : std::uint8_t { none, dgc, fp16, int8 };
enum class ServerPlacement : std::uint8_t { dedicated, colocated };
enum class ServerSharding : std::uint8_t { even, layers };
enum class ServerProtocol : std::uint8_t { request_response, pipelined };
enum class ServerMode : std::uint8_t { synchronous, asynchronous, bounded };
enum class LocalInterval : std::uint8_t { fixed, post_local, adaptive };

/// [parallelism]. Sizes are checked against the world by place_ranks()
/// (strategies/placement/placement.hpp).
struct Parallelism {
  std::size_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::size_t virtual_pipeline = 1;      // model chunks a rank holds (interleaved schedules)
  std::optional<std::size_t> data;       // derived from the world; checked when given
  std::string order = "tp-cp-ep-dp-pp";  // the first varies fastest from rank to rank
  ContextExchange context_exchange = ContextExchange::all_gather;  // of keys and values
  double expert_capacity = 0;   // places of an expert, over its even share; 0: as many as come
  double expert_imbalance = 1;  // tokens of the busiest expert rank, over its even share
  bool sequence_parallel = false;
  std::string schedule = "1F1B";  // PyTorch's names, or "none": stages without a pipeline
  std::string schedule_csv;       // a file in PyTorch's notation, instead of a name
  std::vector<std::size_t> layers_per_stage;  // of every (virtual) stage; empty: even
  Recompute recompute = Recompute::none;
  std::size_t zero_stage = 0;           // 0 to 3; use_distributed_optimizer = 1
  std::size_t zero_shard_ranks = 0;     // data-parallel ranks that share one copy; 0: all
  bool overlap_grad_reduce = false;     // with the backward pass
  bool async_tensor_all_reduce = true;  // beside products of the backward pass
  bool overlap_param_gather = false;    // with the forward pass (ZeRO)
  std::size_t prefetch_layers = 1;      // gathered ahead of use (ZeRO-3)
  Bytes bucket_size;        // of gradients per all-reduce; 0: see strategies/plan/buckets.hpp
  Bytes first_bucket_size;  // small, so that the first all-reduce begins early
  bool broadcast_parameters = false;  // count the initial broadcast as part of the step
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

/// [training].
struct Training {
  std::size_t micro_batch_size = 1;
  std::size_t global_batch_size = 0;  // 0: micro_batch_size × dp, one micro-batch each
  std::size_t seq_length = 0;         // 0: the model's own
  Scaling scaling = Scaling::strong;  // weak: global_batch_size is per data-parallel rank
  Precision precision = Precision::bf16;
  bool gradients_in_fp32 = false;  // Megatron's accumulate_allreduce_grads_in_fp32
  OptimizerKind optimizer = OptimizerKind::adam;
  bool autocast = false;  // weights in fp32, cast op by op (PyTorch's autocast); else 16-bit copies
  LossScaling loss_scaling = LossScaling::none;
  std::size_t loss_scale_window = 2000;  // steps until the scale doubles: one of them is skipped
  double initial_loss_scale = 65536;     // of a real run, as is the next; PyTorch's GradScaler
  double learning_rate = 0;              // 0: one that is usual for the optimizer
  std::size_t data_seed = 1;             // of parameters, samples and masks of a real run
  Fusion fusion = Fusion::none;          // of element-wise kernels that follow one another
  bool cuda_graph = false;               // kernels are launched together, as nodes of one graph
  Time graph_node_overhead = 1500_ns;    // of each of them, in place of a launch
  std::size_t framework = 0;             // whose kernels and launches: sim/scenario/framework.hpp
  Time launch_time;                      // of the host, each kernel; 0: the framework's
  bool launch_blocking = false;          // the host waits for each kernel
  double exchange_share = 0;             // of gradients' best rate; 0: the framework's
  bool flash_attention = true;
  std::optional<double> clip_grad;  // longest gradient; 0: any; none: 1 for models of sequences
  double dropout = 0;               // > 0: masks are made, kept and read
  double tokens = 0, epochs = 0, samples_per_epoch = 0;  // of the whole training; 0: not asked
  double gradient_noise_scale = 0;                       // B_noise, samples or tokens; 0: not asked
  double price_per_gpu_hour = 0;                         // with its currency, as written
  std::string currency;
  friend bool operator==(const Training&, const Training&) = default;
};

/// [parameter_server]: workers push gradients to servers and pull parameters from them, instead of
/// reducing among themselves (strategies/servers/parameter_server.hpp).
struct ParameterServer {
  std::size_t servers = 0;  // 0: none
  ServerPlacement placement = ServerPlacement::dedicated;
  ServerSharding sharding = ServerSharding::even;
  ServerProtocol protocol = ServerProtocol::request_response;
  ServerMode mode = ServerMode::synchronous;
  std::optional<std::size_t> staleness;  // bounded: steps ahead of the slowest worker
  std::size_t steps = 20;                // of every worker
  double sparsity = 0;                   // share of the parameters that an update leaves alone
  Bytes index_bytes{4};                  // sent with each value of a sparse update
  bool incremental_pulls = false;        // only what has changed since the worker's last pull
  friend bool operator==(const ParameterServer&, const ParameterServer&) = default;
};

/// [local_sgd]: replicas go on by themselves and average their parameters every `interval` steps
/// (strategies/methods/local_sgd.hpp).
struct LocalSgd {
  std::size_t interval = 0;  // 0: none
  LocalInterval kind = LocalInterval::fixed;
  std::size_t synchronous_steps = 0;  // post_local: first
  double loss_half_steps = 0;         // adaptive: steps in which the loss halves
  std::size_t steps = 0;              // simulated; 0: as many as show a whole interval
  friend bool operator==(const LocalSgd&, const LocalSgd&) = default;
};

/// [collectives]: "auto", or an algorithm for each kind.
struct CollectiveChoice {
  std::string all_reduce = "auto", all_gather = "auto", reduce_scatter = "auto", broadcast = "auto",
              all_to_all = "auto";
  std::string protocol = "auto";
  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
};

/// [compression] of gradients between data-parallel ranks
/// (strategies/methods/gradient_compression.hpp).
struct Compression {
  CompressionKind method = CompressionKind::none;
  double sparsity = 0.999;      // share of the gradients that stays at home
  double warmup_epochs = 0;     // sparsity rises over these, from 75 % on
  double sampled_share = 0.01;  // of the gradients, to find the threshold from
  bool momentum_correction = true, local_clipping = true, factor_masking = true;
  friend bool operator==(const Compression&, const Compression&) = default;
};

/// [imperfection]: what real machines do (strategies/plan/imperfections.hpp). All draws come from
/// `seed`.
struct Imperfection {
  std::size_t seed = 1, seeds = 1;  // seeds: so many runs, from `seed` on
  std::vector<std::size_t> slow_ranks;
  double slow_rank_factor = 1;                // their kernels take so many times as long
  std::vector<std::size_t> slow_cables;       // of these ranks: by which they leave their node
  double slow_cable_factor = 1;               // its bandwidth is divided by this
  Time slow_cable_latency;                    // and this is added
  double kernel_jitter = 0, rank_jitter = 0;  // coefficient of variation, drawn for each
  Jitter distribution = Jitter::lognormal;    // of both
  double network_jitter = 0;                  // mean of the exponential share that exchanges lose
  std::vector<std::size_t> pause_ranks;       // empty: all
  Time pause_every, pause_length;             // of their own kernels' time
  bool pause_together = false;                // all at the same point of their work
  friend bool operator==(const Imperfection&, const Imperfection&) = default;
};

/// [cluster]: a catalog name or a file, and what the scenario changes of it; made into a Topology
/// by topology_of() (sim/scenario/scenario_cluster.hpp).
struct ClusterChoice {
  std::string name_or_file;  // empty: all of it is inline
  std::optional<std::size_t> nodes, gpus_per_node;
  std::string inline_json;  // the other keys of a cluster file, written in the scenario itself
  friend bool operator==(const ClusterChoice&, const ClusterChoice&) = default;
};

struct Scenario {
  std::string title, question;
  ModelChoice model;
  ClusterChoice cluster;
  Parallelism parallelism;
  Training training;
  CollectiveChoice collectives;
  Compression compression;
  Imperfection imperfection;
  ParameterServer parameter_server;
  LocalSgd local_sgd;
  std::string calibration;  // a profile's file; empty: the catalog's own figures
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// A mistake that only arithmetic shows. Who read the file knows where its keys stand
/// (LoadedScenario::placed); the first of `keys` that was given is to blame.
struct KeyProblem {
  std::vector<std::string> keys;  // long names: "tensor_model_parallel_size"
  std::string message;
  friend bool operator==(const KeyProblem&, const KeyProblem&) = default;
};

}  // namespace rehearse
