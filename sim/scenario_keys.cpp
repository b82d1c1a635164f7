// The table of keys.
#include "sim/scenario_keys.hpp"

#include <array>

#include "sim/framework.hpp"

namespace rehearse {

namespace {

// `value<P, &Parallelism::tensor>` is the function that finds it in a Scenario.
template <auto Part, auto Member>
auto& value(Scenario& scenario) {
  return scenario.*Part.*Member;
}
template <auto Member>
auto& value(Scenario& scenario) {
  return scenario.*Member;
}

template <auto Part, auto Member>
std::size_t position(const Scenario& scenario) {
  return static_cast<std::size_t>(scenario.*Part.*Member);
}
template <auto Part, auto Member>
void choose(Scenario& scenario, std::size_t position) {
  auto& enumerator = scenario.*Part.*Member;
  enumerator = static_cast<std::remove_reference_t<decltype(enumerator)>>(position);
}
template <auto Part, auto Member>
constexpr ChoiceField choice(std::span<const std::string_view> words) {
  return {words, position<Part, Member>, choose<Part, Member>};
}

// In the order of their enumerators.
constexpr std::string_view recompute_words[] = {"none", "selective", "full"};
constexpr std::string_view context_words[] = {"all_gather", "p2p"};
constexpr std::string_view precision_words[] = {"fp32", "tf32", "fp16", "bf16", "fp8"};
constexpr std::string_view optimizer_words[] = {"sgd", "momentum", "adam", "lars", "lamb"};
constexpr std::string_view scaling_words[] = {"weak", "strong"};
constexpr std::string_view loss_scaling_words[] = {"none", "dynamic"};
constexpr std::string_view fusion_words[] = {"none", "elementwise"};
constexpr std::string_view jitter_words[] = {"lognormal", "gamma"};
constexpr std::string_view compression_words[] = {"none", "dgc", "fp16", "int8"};
constexpr std::string_view server_placement_words[] = {"dedicated", "colocated"};
constexpr std::string_view server_sharding_words[] = {"even", "layers"};
constexpr std::string_view server_protocol_words[] = {"request_response", "pipelined"};
constexpr std::string_view server_mode_words[] = {"synchronous", "asynchronous", "bounded"};
constexpr std::string_view local_interval_words[] = {"fixed", "post_local", "adaptive"};

// Products of these fit: tp × pp × cp, mbs × dp, gbs × seq. The lab's size_t has 32 bits.
constexpr bool is_wide = sizeof(std::size_t) > 4;
constexpr std::size_t most_ranks = is_wide ? 1 << 20 : 1 << 10,
                      most_samples = std::size_t{1} << (is_wide ? 32 : 20), most_tokens = 1 << 30,
                      most_layers = 1 << 20, most_steps = 1 << 20;

constexpr auto M = &Scenario::model;
constexpr auto C = &Scenario::cluster;
constexpr auto P = &Scenario::parallelism;
constexpr auto T = &Scenario::training;
constexpr auto L = &Scenario::collectives;
constexpr auto G = &Scenario::compression;
constexpr auto I = &Scenario::imperfection;
constexpr auto S = &Scenario::parameter_server;
constexpr auto D = &Scenario::local_sgd;

constexpr CountField ranks(std::size_t& (*at)(Scenario&)) { return {at, 1, most_ranks}; }

constexpr std::string_view model_is = "what the model is", zero_is = "what ZeRO cuts",
                           schedule_is = "the schedule", length_is = "how long the training is";

void only_preset(Scenario& s) { s.model = {.preset = std::move(s.model.preset)}; }
void only_config(Scenario& s) { s.model = {.hf_config = std::move(s.model.hf_config)}; }
void only_machine(Scenario& s) { s.cluster.inline_json.clear(); }
void no_csv(Scenario& s) { s.parallelism.schedule_csv.clear(); }
void no_schedule(Scenario& s) { s.parallelism.schedule = Parallelism{}.schedule; }
void no_epochs(Scenario& s) { s.training.epochs = s.training.samples_per_epoch = 0; }
void no_tokens(Scenario& s) { s.training.tokens = 0; }

constexpr std::string_view top = "", model = "model", cluster = "cluster",
                           parallelism = "parallelism", training = "training",
                           collectives = "collectives", compression = "compression",
                           imperfection = "imperfection", server = "parameter_server",
                           local = "local_sgd";

constexpr ScenarioKey keys[] = {
    {top, "schema", "", FileOnlyField{"1"}, "version of this form"},
    {top, "extends", "", FileOnlyField{"file"}, "another scenario; what follows changes it"},
    {top, "title", "", TextField{value<&Scenario::title>}, "one line for reports"},
    {top, "question", "", TextField{value<&Scenario::question>}, "what the scenario is to answer"},
    {top, "calibration", "", FileField{value<&Scenario::calibration>},
     "a profile of measured costs, instead of the catalog's figures"},

    {model, "preset", "model", TextField{value<M, &ModelChoice::preset>},
     "a published model: `gpt3-175b`, `llama-3-8b`, `resnet-50`", model_is, only_preset},
    {model, "hf_config", "", FileField{value<M, &ModelChoice::hf_config>},
     "a Hugging Face config.json; or write its keys here: `model_type`, `hidden_size` …", model_is,
     only_config},

    {cluster, "name", "cluster", TextField{value<C, &ClusterChoice::name_or_file>},
     "a machine of the catalog, or a cluster file; any key of a cluster file may follow",
     "what the machine is", only_machine},
    {cluster, "nodes", "", MaybeCountField{value<C, &ClusterChoice::nodes>, most_ranks},
     "how many of them"},
    {cluster, "gpus_per_node", "",
     MaybeCountField{value<C, &ClusterChoice::gpus_per_node>, most_ranks},
     "fewer than the machine has"},

    {parallelism, "tensor_model_parallel_size", "tp", ranks(value<P, &Parallelism::tensor>),
     "ranks that split each operator"},
    {parallelism, "pipeline_model_parallel_size", "pp", ranks(value<P, &Parallelism::pipeline>),
     "ranks that the layers are dealt to, in stages"},
    {parallelism, "virtual_pipeline_model_parallel_size", "vpp",
     ranks(value<P, &Parallelism::virtual_pipeline>), "stages on each of them (interleaved)"},
    {parallelism, "context_parallel_size", "cp", ranks(value<P, &Parallelism::context>),
     "ranks that split each sequence, or the rows of each image"},
    {parallelism, "cp_comm_type", "", choice<P, &Parallelism::context_exchange>(context_words),
     "how they meet all keys: gathered at once, or block by block round a ring (ring attention)"},
    {parallelism, "expert_model_parallel_size", "ep", ranks(value<P, &Parallelism::expert>),
     "ranks, out of dp × cp, that the experts are dealt to"},
    {parallelism, "moe_expert_capacity_factor", "",
     NumberField{value<P, &Parallelism::expert_capacity>, 0, 1e6},
     "places of each expert, over its even share of the tokens; 0: as many as come"},
    {parallelism, "moe_load_imbalance", "",
     NumberField{value<P, &Parallelism::expert_imbalance>, 1, 1e6},
     "tokens of the busiest expert rank, over its even share; the others wait for it"},
    {parallelism, "data_parallel_size", "dp",
     MaybeCountField{value<P, &Parallelism::data>, most_ranks},
     "follows from the world: world / (tp × pp × cp); checked when given"},
    {parallelism, "order", "", TextField{value<P, &Parallelism::order>},
     "which dimension varies fastest from rank to rank"},
    {parallelism, "sequence_parallel", "", FlagField{value<P, &Parallelism::sequence_parallel>},
     "split what tensor parallelism leaves whole along the sequence"},
    {parallelism, "schedule", "", TextField{value<P, &Parallelism::schedule>},
     "of the pipeline, in PyTorch's words; `none`: stages without a pipeline", schedule_is, no_csv},
    {parallelism, "schedule_csv", "", FileField{value<P, &Parallelism::schedule_csv>},
     "a schedule in PyTorch's notation", schedule_is, no_schedule},
    {parallelism, "layers_per_stage", "",
     CountsField{value<P, &Parallelism::layers_per_stage>, most_layers},
     "of every stage; left out: as many each"},
    {parallelism, "recompute_granularity", "", choice<P, &Parallelism::recompute>(recompute_words),
     "what the backward pass computes again instead of keeping it"},
    {parallelism, "use_distributed_optimizer", "", DistributedOptimizerField{},
     "Megatron's word for zero_stage 1", zero_is},
    {parallelism, "zero_stage", "", CountField{value<P, &Parallelism::zero_stage>, 0, 3},
     "cut over data-parallel ranks: 1 optimizer state, 2 gradients too, 3 parameters too", zero_is},
    {parallelism, "zero_shard_ranks", "",
     CountField{value<P, &Parallelism::zero_shard_ranks>, 1, most_ranks},
     "how many ranks share one copy; left out: all dp × cp"},
    {parallelism, "overlap_grad_reduce", "", FlagField{value<P, &Parallelism::overlap_grad_reduce>},
     "reduce gradients beside the backward pass"},
    {parallelism, "async_tensor_model_parallel_allreduce", "",
     FlagField{value<P, &Parallelism::async_tensor_all_reduce>},
     "all-reduce the gradients of inputs over tp beside the products of weights' gradients"},
    {parallelism, "overlap_param_gather", "",
     FlagField{value<P, &Parallelism::overlap_param_gather>},
     "gather parameters beside the forward pass (ZeRO)"},
    {parallelism, "prefetch_layers", "",
     CountField{value<P, &Parallelism::prefetch_layers>, 0, most_layers},
     "gathered ahead of their use (ZeRO 3)"},
    {parallelism, "bucket_size", "", BytesField{value<P, &Parallelism::bucket_size>},
     "gradients reduced together; left out: 25 MiB beside the backward pass, all at once after it"},
    {parallelism, "first_bucket_size", "", BytesField{value<P, &Parallelism::first_bucket_size>},
     "smaller, so that the first one leaves early; left out: 1 MiB, or none after it"},
    {parallelism, "broadcast_parameters", "",
     FlagField{value<P, &Parallelism::broadcast_parameters>},
     "count the broadcast of the initial parameters into the step"},

    {training, "micro_batch_size", "mbs",
     CountField{value<T, &Training::micro_batch_size>, 1, most_ranks},
     "samples that a rank takes at once"},
    {training, "global_batch_size", "gbs",
     CountField{value<T, &Training::global_batch_size>, 1, most_samples},
     "samples of a step; left out: mbs × dp"},
    {training, "scaling", "", choice<T, &Training::scaling>(scaling_words),
     "weak: global_batch_size is that of each data-parallel rank"},
    {training, "seq_length", "seq", CountField{value<T, &Training::seq_length>, 1, most_tokens},
     "tokens of a sample; left out: the model's own"},
    {training, "dtype", "", choice<T, &Training::precision>(precision_words),
     "what is multiplied and kept; the optimizer keeps fp32"},
    {training, "accumulate_allreduce_grads_in_fp32", "",
     FlagField{value<T, &Training::gradients_in_fp32>}, "Megatron's word: gradients in fp32"},
    {training, "optimizer", "", choice<T, &Training::optimizer>(optimizer_words),
     "its state, norms and traffic"},
    {training, "autocast", "", FlagField{value<T, &Training::autocast>},
     "weights in fp32, cast op by op by white, grey and black lists; else 16-bit weights"},
    {training, "loss_scaling", "", choice<T, &Training::loss_scaling>(loss_scaling_words),
     "of fp16: dynamic checks every gradient and skips a step now and then"},
    {training, "loss_scale_window", "",
     CountField{value<T, &Training::loss_scale_window>, 1, most_samples},
     "good steps until the scale doubles; about one step of so many is skipped"},
    {training, "initial_loss_scale", "",
     NumberField{value<T, &Training::initial_loss_scale>, 1, 0x1p+24},
     "of a real run: what the loss is multiplied by at first"},
    {training, "learning_rate", "lr", NumberField{value<T, &Training::learning_rate>, 0, 1e6},
     "of a real run; 0: sgd 0.1, momentum 0.05, adam 0.003, lars 5, lamb 0.01"},
    {training, "data_seed", "", CountField{value<T, &Training::data_seed>, 0, most_samples},
     "of a real run: its parameters, samples and dropout masks"},
    {training, "fusion", "", choice<T, &Training::fusion>(fusion_words),
     "elementwise: such kernels become one with those before and after them"},
    {training, "cuda_graph", "", FlagField{value<T, &Training::cuda_graph>},
     "kernels are nodes of one graph, and launched together"},
    {training, "graph_node_overhead", "", TimeField{value<T, &Training::graph_node_overhead>},
     "of each kernel of a graph, in place of the device's launch_overhead"},
    {training, "framework", "", choice<T, &Training::framework>(framework_words),
     "whose kernels, launches and memory it has (`sim/scenario/framework.cpp`); none: all fused, "
     "no host"},
    {training, "launch_time", "", TimeField{value<T, &Training::launch_time>},
     "of the host for each kernel, which the device waits for; 0s: the framework's own"},
    {training, "launch_blocking", "", FlagField{value<T, &Training::launch_blocking>},
     "the host waits for every kernel before it launches the next (CUDA_LAUNCH_BLOCKING=1)"},
    {training, "exchange_share", "", NumberField{value<T, &Training::exchange_share>, 0, 1},
     "of the rate that gradients' and parameters' exchanges could have where nothing computes "
     "beside them; 0: the framework's own"},
    {training, "flash_attention", "", FlagField{value<T, &Training::flash_attention>},
     "attention in one kernel that keeps no scores"},
    {training, "clip_grad", "", MaybeNumberField{value<T, &Training::clip_grad>},
     "longest norm of the gradients, which is then taken; 0: it is not; left out: 1 for models of "
     "sequences, else 0"},
    {training, "dropout", "", ShareField{value<T, &Training::dropout>},
     "above 0: masks are made, kept and read"},
    {training, "tokens", "", AmountField{value<T, &Training::tokens>},
     "of the whole training: `\"15T\"`", length_is, no_epochs},
    {training, "epochs", "", AmountField{value<T, &Training::epochs>},
     "the same, with samples_per_epoch", length_is, no_tokens},
    {training, "samples_per_epoch", "", AmountField{value<T, &Training::samples_per_epoch>},
     "`\"1.28M\"`"},
    {training, "gradient_noise_scale", "", AmountField{value<T, &Training::gradient_noise_scale>},
     "samples (tokens, if the model has them) at which larger batches stop paying"},
    {training, "price_per_gpu_hour", "", PriceField{}, "`\"2.50 USD\"`"},

    {collectives, "all_reduce", "", TextField{value<L, &CollectiveChoice::all_reduce>},
     "`auto`, or an algorithm: `ring`, `tree`, `nvls` … (`strategies/README.md`)"},
    {collectives, "all_gather", "", TextField{value<L, &CollectiveChoice::all_gather>}, "likewise"},
    {collectives, "reduce_scatter", "", TextField{value<L, &CollectiveChoice::reduce_scatter>},
     "likewise"},
    {collectives, "broadcast", "", TextField{value<L, &CollectiveChoice::broadcast>}, "likewise"},
    {collectives, "all_to_all", "", TextField{value<L, &CollectiveChoice::all_to_all>}, "likewise"},
    {collectives, "protocol", "", TextField{value<L, &CollectiveChoice::protocol>},
     "`auto`, or one of the machine's: `ll`, `ll128`, `simple`"},

    {compression, "method", "compression", choice<G, &Compression::method>(compression_words),
     "of gradients on their way between data-parallel ranks; `dgc`: deep gradient compression"},
    {compression, "sparsity", "", ShareField{value<G, &Compression::sparsity>},
     "share of the gradients that is not sent (dgc)"},
    {compression, "warmup_epochs", "", NumberField{value<G, &Compression::warmup_epochs>, 0, 1e6},
     "sparsity rises over these from 75 % (dgc); the report then averages over all epochs"},
    {compression, "sampled_share", "", NumberField{value<G, &Compression::sampled_share>, 1e-6, 1},
     "of the gradients, from which the threshold is found (dgc)"},
    {compression, "momentum_correction", "", FlagField{value<G, &Compression::momentum_correction>},
     "what stays at home gathers its velocity too (dgc)"},
    {compression, "local_clipping", "", FlagField{value<G, &Compression::local_clipping>},
     "gradients are clipped before they are added to what stayed at home (dgc)"},
    {compression, "factor_masking", "", FlagField{value<G, &Compression::factor_masking>},
     "velocity of what is sent is forgotten (dgc)"},

    {imperfection, "seed", "", CountField{value<I, &Imperfection::seed>, 0, most_samples},
     "of all that is drawn"},
    {imperfection, "seeds", "", CountField{value<I, &Imperfection::seeds>, 1, most_ranks},
     "runs, from this seed on; above 1: the report has the distribution of the step time"},
    {imperfection, "slow_ranks", "", CountsField{value<I, &Imperfection::slow_ranks>, most_ranks},
     "whose kernels take longer"},
    {imperfection, "slow_rank_factor", "",
     NumberField{value<I, &Imperfection::slow_rank_factor>, 1, 1000}, "so many times as long"},
    {imperfection, "slow_cables", "", CountsField{value<I, &Imperfection::slow_cables>, most_ranks},
     "of these ranks: those by which they leave their node, or all of their own on one node"},
    {imperfection, "slow_cable_factor", "",
     NumberField{value<I, &Imperfection::slow_cable_factor>, 1, 1000},
     "by which their bandwidth is divided"},
    {imperfection, "slow_cable_latency", "", TimeField{value<I, &Imperfection::slow_cable_latency>},
     "which is added to theirs"},
    {imperfection, "kernel_jitter", "", NumberField{value<I, &Imperfection::kernel_jitter>, 0, 10},
     "coefficient of variation of each kernel's time"},
    {imperfection, "rank_jitter", "", NumberField{value<I, &Imperfection::rank_jitter>, 0, 10},
     "the same, one draw for all kernels of a rank in a step"},
    {imperfection, "distribution", "", choice<I, &Imperfection::distribution>(jitter_words),
     "of both, with mean 1"},
    {imperfection, "network_jitter", "",
     NumberField{value<I, &Imperfection::network_jitter>, 0, 100},
     "mean of the share by which an exchange takes longer, exponentially distributed"},
    {imperfection, "pause_ranks", "", CountsField{value<I, &Imperfection::pause_ranks>, most_ranks},
     "who pauses; left out: all"},
    {imperfection, "pause_every", "", TimeField{value<I, &Imperfection::pause_every>},
     "of a rank's own kernel time; where in it a step begins is drawn"},
    {imperfection, "pause_length", "", TimeField{value<I, &Imperfection::pause_length>},
     "how long its compute stream then stands still"},
    {imperfection, "pause_together", "", FlagField{value<I, &Imperfection::pause_together>},
     "all ranks pause at the same point of their work, not each at its own"},

    {server, "servers", "", CountField{value<S, &ParameterServer::servers>, 1, most_ranks},
     "workers push gradients to them and pull parameters; left out: no servers, all-reduce"},
    {server, "server_placement", "", choice<S, &ParameterServer::placement>(server_placement_words),
     "on the last nodes, which do not train, or on the workers' own devices"},
    {server, "server_sharding", "", choice<S, &ParameterServer::sharding>(server_sharding_words),
     "every tensor cut over all servers, or whole layers dealt to them"},
    {server, "server_protocol", "", choice<S, &ParameterServer::protocol>(server_protocol_words),
     "whole, step by step with acknowledgements; or bucket by bucket beside the computation"},
    {server, "server_mode", "", choice<S, &ParameterServer::mode>(server_mode_words),
     "wait for all workers, for nobody, or for those more than `staleness` steps behind"},
    {server, "staleness", "", MaybeCountField{value<S, &ParameterServer::staleness>, most_steps},
     "of server_mode bounded: how many steps a worker may be ahead of the slowest"},
    {server, "steps_per_worker", "", CountField{value<S, &ParameterServer::steps>, 1, most_steps},
     "simulated, of every worker"},
    {server, "update_sparsity", "", ShareField{value<S, &ParameterServer::sparsity>},
     "share of the parameters that an update leaves alone"},
    {server, "index_bytes", "", BytesField{value<S, &ParameterServer::index_bytes>},
     "sent with each value of a sparse update"},
    {server, "incremental_pulls", "", FlagField{value<S, &ParameterServer::incremental_pulls>},
     "pull only what has changed since the last pull (with sparse updates)"},

    {local, "interval", "", CountField{value<D, &LocalSgd::interval>, 1, most_steps},
     "steps between two averages of the parameters; left out: gradients are reduced every step"},
    {local, "interval_kind", "", choice<D, &LocalSgd::kind>(local_interval_words),
     "always the same, after synchronous_steps, or shrinking with the loss (AdaComm)"},
    {local, "synchronous_steps", "",
     CountField{value<D, &LocalSgd::synchronous_steps>, 1, most_steps},
     "of interval_kind post_local: first, before the local ones"},
    {local, "loss_half_steps", "", AmountField{value<D, &LocalSgd::loss_half_steps>},
     "of interval_kind adaptive: the loss after t steps is modelled as 1 / (1 + t / this)"},
    {local, "simulated_steps", "", CountField{value<D, &LocalSgd::steps>, 1, most_steps},
     "simulated; left out: one interval, and as many synchronous ones"},
};

constexpr std::string_view tables[] = {top,      model,       cluster,     parallelism,
                                       training, collectives, compression, imperfection,
                                       server,   local};

}  // namespace

std::span<const ScenarioKey> scenario_keys() { return keys; }
std::span<const std::string_view> scenario_tables() { return tables; }

const ScenarioKey* find_key(std::string_view table, std::string_view word) {
  for (const ScenarioKey& key : keys) {
    if (key.table != table) continue;
    const bool has_alias = !key.alias.empty() && key.alias != table;
    if (key.name == word || (has_alias && key.alias == word)) return &key;
  }
  return nullptr;
}

}  // namespace rehearse
