// The table of keys.
#include "sim/scenario_keys.hpp"

#include <array>

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
constexpr std::string_view precision_words[] = {"fp32", "tf32", "fp16", "bf16", "fp8"};
constexpr std::string_view optimizer_words[] = {"sgd", "momentum", "adam", "lars", "lamb"};
constexpr std::string_view scaling_words[] = {"weak", "strong"};
constexpr std::string_view server_placement_words[] = {"dedicated", "colocated"};
constexpr std::string_view server_sharding_words[] = {"even", "layers"};
constexpr std::string_view server_protocol_words[] = {"request_response", "pipelined"};
constexpr std::string_view server_mode_words[] = {"synchronous", "asynchronous", "bounded"};
constexpr std::string_view local_interval_words[] = {"fixed", "post_local", "adaptive"};

// Products of these fit 64 bits: tp × pp × cp, mbs × dp, gbs × seq.
constexpr std::size_t most_ranks = 1 << 20, most_samples = std::size_t{1} << 32,
                      most_tokens = 1 << 30, most_layers = 1 << 20, most_steps = 1 << 20;

constexpr auto M = &Scenario::model;
constexpr auto C = &Scenario::cluster;
constexpr auto P = &Scenario::parallelism;
constexpr auto T = &Scenario::training;
constexpr auto L = &Scenario::collectives;
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
                           collectives = "collectives", server = "parameter_server",
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
     "ranks that split each sequence"},
    {parallelism, "expert_model_parallel_size", "ep", ranks(value<P, &Parallelism::expert>),
     "ranks, out of dp × cp, that the experts are dealt to"},
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
    {parallelism, "overlap_param_gather", "",
     FlagField{value<P, &Parallelism::overlap_param_gather>},
     "gather parameters beside the forward pass (ZeRO)"},
    {parallelism, "prefetch_layers", "",
     CountField{value<P, &Parallelism::prefetch_layers>, 0, most_layers},
     "gathered ahead of their use (ZeRO 3)"},
    {parallelism, "bucket_size", "", BytesField{value<P, &Parallelism::bucket_size>},
     "gradients reduced together"},
    {parallelism, "first_bucket_size", "", BytesField{value<P, &Parallelism::first_bucket_size>},
     "smaller, so that the first one leaves early"},
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
    {training, "flash_attention", "", FlagField{value<T, &Training::flash_attention>},
     "attention in one kernel that keeps no scores"},
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

constexpr std::string_view tables[] = {top,      model,       cluster, parallelism,
                                       training, collectives, server,  local};

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
