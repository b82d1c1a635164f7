// The table of frameworks. Choices are what their documents and options say by default, written
// down without going through every source; what was looked up says where. `launch` is fitted to
// published steps, and `band` is what is left of them (tools/README.md has the command).
#include "sim/scenario/framework.hpp"

#include <array>

namespace rehearse {

namespace {

using Fused = Framework::Fused;

// Plain PyTorch modules.
constexpr Fused eager{.norm = false,
                      .softmax = false,
                      .activation = false,
                      .residual = false,
                      .rope = false,
                      .accumulation = false};

// Element-wise kernels of its own for everything but the sum of gradients.
constexpr Fused all_but_sums{.accumulation = false};

// Recipes: ddp.overlap_grad_reduce, overlap_param_gather, grad_reduce_in_fp32 = False;
// Transformer Engine with cuDNN's attention.
constexpr Framework nemo(std::string_view name) {
  return {.name = name,
          .launch = 60_us,
          .band = {0.94, 1.09},
          .overlap_grad_reduce = true,
          .overlap_param_gather = true};
}

// Megatron-LM's kernels under DeepSpeed's engine, which parts activations among tensor ranks on
// their way to the next stage (runtime/pipe/engine.py, is_pipe_partitioned).
constexpr Framework megatron_deepspeed(std::string_view name) {
  return {.name = name,
          .launch = 56131_ns,
          .fused = all_but_sums,
          .overlaps_tensor_ranks = false,
          .band = {0.877, 1.1},
          .dropout = 0.1,
          .scatters_messages = true};
}

constexpr Framework megatron_zero1(std::string_view name) {
  Framework framework = megatron_deepspeed(name);
  framework.fp32_gradients = true;
  return framework;
}

// FSDP2 prefetches; mixed_precision_reduce = float32.
constexpr Framework torchtitan(std::string_view name, Fused fused) {
  return {.name = name,
          .launch = 60_us,
          .fused = fused,
          .overlaps_tensor_ranks = false,
          .flash = 2,
          .band = {0.877, 1.15},
          .overlap_grad_reduce = true,
          .overlap_param_gather = true,
          .fp32_gradients = true};
}

// github.com/Aleph-Alpha/scaling, looked up: optimizer/allreduce.py sums bf16 gradients whole and
// in fp32, also under ZeRO; pipe_partition_method is UNIFORM over embedding, blocks, norm and head.
constexpr Framework aa_scaling(std::string_view name, Fused fused, std::uint8_t flash) {
  return {.name = name,
          .launch = 60_us,
          .fused = fused,
          .overlaps_tensor_ranks = false,
          .flash = flash,
          .band = {0.97, 1.3},
          .sums_whole_gradients = true,
          .counts_ends = true};
}

// Data parallelism by the framework's own means (DDP, Horovod, Fleet): buckets leave beside the
// backward pass. `update_bytes` and `spread` are fitted to 209 published steps of ResNet-50 and
// BERT on V100 and T4, 1 to 512 of them, the same for all: scenarios/published/README.md.
constexpr Framework data_parallel(std::string_view name, double update_bytes) {
  return {.name = name,
          .update_bytes = update_bytes,
          .spread = 0.02,
          .band = {0.89, 1.19},
          .overlap_grad_reduce = true};
}

// Bytes for each parameter where an optimizer is the framework's own operators, one after the
// other, with the sums and checks around it; and where XLA joins most of them.
constexpr double chained_update = 430, joined_update = 300;

constexpr Framework with_fp32_gradients(Framework framework) {
  framework.fp32_gradients = true;  // of weights that autocast leaves in fp32
  return framework;
}

// Looked up in PaddlePaddle of 2020: FLAGS_sync_nccl_allreduce is true by default, so that the host
// waits for the stream of each all-reduce (framework/details/all_reduce_op_handle.cc). With AMP
// gradients travel in fp16 (contrib/mixed_precision/decorator.py, update_role_var_grad). Of each
// tensor's gradient L2 decay is a scale and a sum, then momentum; AMP casts, unscales and checks it
// before. `launch` is fitted to the efficiency of 29 steps of ResNet-50 on 8 to 32 V100, which
// are 2.3 points off in the mean with it (from 10.5 to 11 us) and 6.3 without. With AMP alone it
// would be 10.5, in fp32 alone anything from 9 to 13, by the errors of steps 13 us.
constexpr Framework paddle() {
  Framework framework = data_parallel("paddle", chained_update);
  framework.launch = 11_us;
  framework.update_operators = 3;
  framework.update_operators_in_16_bits = 6;
  framework.awaits_sums = true;
  return framework;
}

constexpr std::array<Framework, framework_count> table{{
    {.name = "none", .band = {0.914, 1.15}},
    // arguments.py: overlap_grad_reduce off; bf16 turns accumulate_allreduce_grads_in_fp32 on;
    // hidden_dropout 0.1; async_tensor_model_parallel_allreduce on (since 3.0, of 2022). Kernels of
    // apex and its own (megatron/fused_kernels). Under sequence parallelism the backward pass
    // always gathers and scatters beside its products (core/tensor_parallel/layers.py, looked up).
    {.name = "megatron-lm",
     .launch = 60_us,
     .band = {0.95, 1.19},
     .fp32_gradients = true,
     .dropout = 0.1,
     .scatters_messages = true},
    // ZeRO-3 as it was in 2021 (runtime/zero/stage3.py, fetch_sub_module): waits for each module's
    // parameters and then for the device; overlap_comm off.
    megatron_deepspeed("megatron-lm+deepspeed"),
    megatron_zero1("megatron-deepspeed"),
    nemo("nemo"),
    nemo("megatron-bridge"),
    // FSDP prefetches; its mixed precision PURE reduces in bf16, DEFAULT in fp32 (`variant`). MPT
    // has no biases (no_bias) and PyTorch's layer norm in 16 bits.
    {.name = "llm-foundry",
     .launch = 60_us,
     .fused = eager,
     .flash = 1,
     .band = {0.94, 1.12},
     .overlap_grad_reduce = true,
     .overlap_param_gather = true,
     .biases = false},
    torchtitan("torchtitan", eager),
    // torch.compile: Triton kernels for the chains of element-wise ones.
    torchtitan("torchtitan-compile", all_but_sums),
    // zero1 config: overlap_sync_grad = True, overlap_sync_param = False; bf16 gradients.
    {.name = "internevo",
     .launch = 60_us,
     .fused = {.activation = false, .residual = false, .accumulation = false},
     .overlaps_tensor_ranks = false,
     .flash = 1,
     .band = {0.96, 1.06},
     .overlap_grad_reduce = true},
    // Hagemann et al. 2023 describe a plain ZeRO-1 with bf16 gradients; the kernels of attention
    // and norms are what they vary.
    aa_scaling("aa-scaling-torch", eager, 1),
    aa_scaling("aa-scaling-fused",
               {.norm = false,
                .activation = false,
                .residual = false,
                .rope = false,
                .accumulation = false},
               1),
    aa_scaling("aa-scaling-fa1", eager, 1),
    aa_scaling("aa-scaling-fa2", eager, 2),
    aa_scaling("aa-scaling-fa2-rms",
               {.softmax = false,
                .activation = false,
                .residual = false,
                .rope = false,
                .accumulation = false},
               2),
    with_fp32_gradients(data_parallel("pytorch", chained_update)),
    paddle(),
    data_parallel("tensorflow", joined_update),
    data_parallel("mxnet", 0),  // multi_mp_sgd_mom_update: all weights in one kernel
}};
static_assert(!table.back().name.empty());

}  // namespace

std::span<const Framework, framework_count> frameworks() { return table; }

constexpr std::array<std::string_view, framework_count> framework_words = [] {
  std::array<std::string_view, framework_count> words;
  for (std::size_t i = 0; i < framework_count; ++i) words[i] = table[i].name;
  return words;
}();

const Framework* find_framework(std::string_view name) {
  for (const Framework& framework : table)
    if (framework.name == name) return &framework;
  return nullptr;
}

}  // namespace rehearse
