// Two translations; nothing here looks at a row's name.
#include "tools/accuracy/measured_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/scenario/framework.hpp"
#include "sim/workload/model_presets.hpp"

namespace rehearse {

namespace {

// A variant is a kernel set of its own where the table has it ("fa2-rms"), or one with an option
// ("compile+asynctp"). Of a framework that we do not know nothing is assumed.
const Framework& framework_of(const TrainingMeasured& row) {
  const std::string variant = row.variant.substr(0, row.variant.find('+'));
  for (const std::string& name : {row.framework + "-" + variant, row.framework})
    if (const Framework* framework = find_framework(name)) return *framework;
  return frameworks().front();
}

// What a source says of its jobs and no column has.
struct JobOption {
  std::string_view framework, variant;
  bool launch_blocking = false;
};
constexpr JobOption job_options[] = {
    // BigScience: without CUDA_LAUNCH_BLOCKING=1 jobs of 320 GPUs and more hang
    // (train/tr11-176B-ml/chronicles-prequel.md, and the job script beside it).
    {"megatron-deepspeed", "even", true},
    // ZeRO-3 of 2021: torch.cuda.synchronize() before every module's kernels (DeepSpeed,
    // runtime/zero/stage3.py, _synchronize_communication).
    {"megatron-lm+deepspeed", "base", true},
};

bool blocks_launches(const TrainingMeasured& row) {
  return std::any_of(std::begin(job_options), std::end(job_options), [&](const JobOption& option) {
    return option.framework == row.framework && option.variant == row.variant &&
           option.launch_blocking;
  });
}

Precision precision_of(std::string_view word) {
  for (std::size_t p = 0; p < precision_words.size(); ++p)
    if (precision_words[p] == word) return static_cast<Precision>(p);
  if (word == "mxfp8") return Precision::fp8;  // with scales of blocks: the same peak
  throw InputError(fmt::format("precision '{}' is not modelled", word));
}

Workload model_of(const TrainingMeasured& row, const Framework& framework) {
  Transformer model{.hidden = row.hidden,
                    .layers = row.layers,
                    .heads = row.heads,
                    .kv_heads = row.kv_heads,
                    .head_size = row.hidden / row.heads,
                    .ffn = row.ffn_hidden,
                    .vocabulary = row.vocab,
                    .positions = row.seq_len};
  if (row.model_type != "gpt") {
    model.norm = Norm::rms;
    model.learned_positions = false;
    model.gated = true;
    model.tied = model.qkv_bias = model.out_bias = model.mlp_bias = false;
  }
  if (!framework.biases) model.qkv_bias = model.out_bias = model.mlp_bias = false;
  if (row.model_type == "moe") {
    model.experts = row.experts;
    model.experts_per_token = row.top_k;
  }
  // Beyond this no sum is sure to fit 64 bits; each size alone was checked when it was read.
  constexpr double most_parameters = 1e17;
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const double mlps =
      std::max(1.0, real(row.experts)) * 3 * real(row.hidden) * real(row.ffn_hidden);
  const double parameters = real(row.layers) * (mlps + 4 * real(row.hidden) * real(row.hidden)) +
                            2 * real(row.vocab) * real(row.hidden);
  if (parameters > most_parameters)
    throw InputError(
        fmt::format("{:.2g} parameters are more than {:.0e}, the most that is "
                    "counted here",
                    parameters, most_parameters));
  return transformer_workload(row.model, row.model_type, model);
}

std::string schedule_of(const TrainingMeasured& row) {
  if (row.schedule == "gpipe") return "GPipe";
  return row.vpp > 1 ? "Interleaved1F1B" : "1F1B";
}

// Modules in equal numbers, the first stages one more where they do not come out even: an embedding
// before the blocks, a norm and a head behind them.
std::vector<std::size_t> blocks_of_modules(std::size_t stages, std::size_t layers) {
  const std::size_t modules = layers + 3;
  std::vector<std::size_t> counts;
  for (std::size_t s = 0; s < stages; ++s)
    counts.push_back(modules / stages + (s < modules % stages ? 1 : 0));
  if (counts.front() < 2 || counts.back() < 3) return {};
  counts.front() -= 1;
  counts.back() -= 2;
  return counts;
}

// Where the layers do not come out even, embedding and output take a layer's place each.
std::vector<std::size_t> layers_of_stages(const TrainingMeasured& row, const Framework& framework) {
  const std::size_t stages = row.pp * row.vpp, layers = static_cast<std::size_t>(row.layers);
  if (framework.counts_ends && stages > 1 && stages <= layers)
    return blocks_of_modules(stages, layers);
  if (stages > 65536 || layers % stages == 0 || (layers + 2) % stages != 0) return {};
  std::vector<std::size_t> counts(stages, (layers + 2) / stages);
  --counts.front();
  --counts.back();
  return counts;
}

Recompute recompute_of(std::string_view word) {
  if (word == "full") return Recompute::full;
  return word == "selective" ? Recompute::selective : Recompute::none;
}

// Images and BERT with data parallelism: every framework here overlaps its buckets with the
// backward pass (DDP, Horovod, Paddle's fused all-reduce). AMP of PyTorch keeps fp32 gradients.
OptimizerKind optimizer_of(const DataParallelMeasured& row) {
  if (!row.model.starts_with("bert")) return OptimizerKind::momentum;
  // NVIDIA's pre-training examples accumulate and step with LAMB; fine-tuning uses Adam.
  return row.model == "bert-large" ? OptimizerKind::lamb : OptimizerKind::adam;
}

std::string preset_of(const std::string& model) {
  if (model == "resnet50") return "resnet-50";
  return model == "vgg16" ? "vgg-16" : model;
}

// Fine-tuning, as it is published, finds an answer in a text (SQuAD): each token may be its
// beginning or its end, and no words are scored. Pre-training scores the masked tokens, 15 % of all
// (Devlin et al. 2019), and NVIDIA's examples gather those first, as Google's own does.
Workload model_of(const DataParallelMeasured& row) {
  Workload workload = preset(preset_of(row.model));
  if (workload.sample != SampleKind::sequence) return workload;
  Transformer model = workload.transformer;
  if (optimizer_of(row) == OptimizerKind::adam) {
    model.pretraining_heads = false;
    model.classes = 2;
  } else {
    model.scored = 0.15;
  }
  return transformer_workload(workload.name, workload.family, model);
}

}  // namespace

MeasuredStep step_of(const TrainingMeasured& row) {
  const Framework& framework = framework_of(row);
  MeasuredStep step{{}, model_of(row, framework)};
  Parallelism& p = step.scenario.parallelism;
  p.tensor = row.tp;
  p.pipeline = row.pp;
  p.context = row.cp;
  p.expert = row.ep;
  p.data = row.dp;
  p.virtual_pipeline = row.vpp;
  p.schedule = schedule_of(row);
  p.layers_per_stage = layers_of_stages(row, framework);
  p.sequence_parallel = row.sequence_parallel && row.tp > 1;
  p.recompute = recompute_of(row.recompute);
  p.zero_stage = row.zero_stage;
  if (row.zero_stage > 0) p.zero_shard_ranks = row.zero_shard_ranks;
  p.overlap_grad_reduce = row.overlap_grad_reduce.value_or(framework.overlap_grad_reduce);
  p.overlap_param_gather =
      row.zero_stage > 0 && row.overlap_param_gather.value_or(framework.overlap_param_gather);
  if (row.zero_stage == 3 && !p.overlap_param_gather) p.prefetch_layers = 0;
  p.async_tensor_all_reduce = row.tp_overlap.value_or(true);
  Training& t = step.scenario.training;
  t.micro_batch_size = row.micro_batch;
  t.global_batch_size = row.global_batch;
  t.seq_length = static_cast<std::size_t>(row.seq_len);
  t.precision = precision_of(row.precision);
  t.framework = static_cast<std::size_t>(&framework - frameworks().data());
  t.flash_attention = row.flash_attention.value_or(false);
  t.gradients_in_fp32 =
      row.variant == "reduce-fp32" || (framework.fp32_gradients && t.precision != Precision::fp16);
  t.dropout = row.model_type == "gpt" ? framework.dropout : 0;
  t.launch_blocking = blocks_launches(row);
  return step;
}

MeasuredStep step_of(const DataParallelMeasured& row) {
  if (row.communication == "parameter_server" || row.communication == "gloo")
    throw InputError(fmt::format("communication '{}' is not modelled", row.communication));
  const Framework* const known = find_framework(row.framework);
  const Framework& framework = known ? *known : frameworks().front();
  MeasuredStep step{{}, model_of(row)};
  step.scenario.parallelism.overlap_grad_reduce = true;
  Training& t = step.scenario.training;
  t.micro_batch_size = row.batch_per_gpu;
  t.global_batch_size = row.batch_per_gpu * row.grad_accum * row.gpus;
  if (step.workload.sample == SampleKind::sequence) t.seq_length = row.seq_len;
  t.precision = precision_of(row.precision);
  t.framework = static_cast<std::size_t>(&framework - frameworks().data());
  t.gradients_in_fp32 = framework.fp32_gradients && t.precision != Precision::fp32;
  // NVIDIA's MXNet scripts ask for it: --fuse-bn-relu 1 --fuse-bn-add-relu 1.
  if (row.framework == "mxnet") t.fusion = Fusion::elementwise;
  t.optimizer = optimizer_of(row);
  t.flash_attention = false;
  return step;
}

}  // namespace rehearse
