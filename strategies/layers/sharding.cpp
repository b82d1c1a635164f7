// What of a model must divide by which number of ranks.
#include "strategies/layers/sharding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

constexpr const char *tp_key = "tensor_model_parallel_size", *cp_key = "context_parallel_size",
                     *ep_key = "expert_model_parallel_size", *sp_key = "sequence_parallel",
                     *ring_key = "cp_comm_type", *capacity_key = "moe_expert_capacity_factor",
                     *imbalance_key = "moe_load_imbalance", *mbs_key = "micro_batch_size",
                     *seq_key = "seq_length";

void check_transformer(const Workload& workload, const Sharding& how,
                       std::vector<KeyProblem>& problems) {
  const Transformer& m = workload.transformer;
  if (m.learned_positions && how.seq_length > m.positions)
    problems.push_back({{seq_key},
                        fmt::format("seq_length {} is longer than the {} positions of {}",
                                    how.seq_length, m.positions, workload.name)});
  if (how.ring_attention && !how.flash_attention)
    problems.push_back({{ring_key, "flash_attention"},
                        fmt::format("cp_comm_type p2p joins blocks of flash attention; set "
                                    "flash_attention = {}, or cp_comm_type = all_gather",
                                    true)});
  if (how.ring_attention && m.window > 0 && m.window < how.seq_length)
    problems.push_back({{ring_key},
                        fmt::format("cp_comm_type p2p: a window of {} tokens leaves most blocks "
                                    "of {} empty; use all_gather",
                                    m.window, workload.name)});
  if (m.experts == 0 && how.expert_capacity > 0)
    problems.push_back({{capacity_key},
                        fmt::format("moe_expert_capacity_factor {}, but the model has no experts",
                                    how.expert_capacity)});
  if (how.expert == 1 && how.expert_imbalance > 1)
    problems.push_back({{imbalance_key},
                        fmt::format("moe_load_imbalance {} is of ranks that experts are dealt to: "
                                    "it needs ep 2 or more, not 1",
                                    how.expert_imbalance)});
  if (how.expert > 1 && m.experts > 0 && how.tensor > 1 && !how.sequence_parallel)
    problems.push_back({{sp_key, ep_key},
                        fmt::format("ep {} with tp {}: tensor ranks would all send the same "
                                    "tokens; set sequence_parallel = true",
                                    how.expert, how.tensor)});
}

// Each rank needs a row of the images that come in.
void check_strips(const Workload& workload, const Sharding& how,
                  std::vector<KeyProblem>& problems) {
  const auto& first = std::get<ImageModule>(workload.layers.front().shape);
  if (how.context > first.input.height)
    problems.push_back({{cp_key},
                        fmt::format("cp {}: images of {} have {} rows to split", how.context,
                                    workload.name, first.input.height)});
}

// Networks of images are split in space only; an MLP's hidden layers are, those at odd places.
void check_plain(const Workload& workload, const Sharding& how, std::vector<KeyProblem>& problems) {
  if (how.context > 1 && workload.sample != SampleKind::image)
    problems.push_back(
        {{cp_key}, fmt::format("cp {}: {} has no sequence to split", how.context, workload.name)});
  if (workload.sample == SampleKind::image) check_strips(workload, how, problems);
  if (how.sequence_parallel)
    problems.push_back(
        {{sp_key}, fmt::format("sequence_parallel: {} has no sequence to split", workload.name)});
  if (how.tensor == 1) return;
  if (workload.sample == SampleKind::image) {
    problems.push_back({{tp_key},
                        fmt::format("tp {}: the convolutions of {} are not split over "
                                    "tensor ranks; cp splits their images, or use data or "
                                    "pipeline parallelism",
                                    how.tensor, workload.name)});
    return;
  }
  for (const Layer& layer : workload.layers) {
    const Dense& dense = std::get<Dense>(layer.shape);
    if (!dense.row && dense.outputs % how.tensor != 0)
      problems.push_back({{tp_key},
                          fmt::format("{} outputs of {} do not divide by tp {}", dense.outputs,
                                      layer.name, how.tensor)});
  }
}

// The largest tensor of a layer must be countable in 64 bits with room for its sums.
void check_size(const Workload& workload, const Sharding& how, std::vector<KeyProblem>& problems) {
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  double widest = 1;
  for (const Layer& layer : workload.layers) {
    if (layer.like != static_cast<std::uint32_t>(&layer - workload.layers.data())) continue;
    if (const auto* dense = std::get_if<Dense>(&layer.shape))
      widest = std::max(widest, real(dense->inputs) + real(dense->outputs));
    if (const auto* images = std::get_if<ImageModule>(&layer.shape))
      for (const ImageOp& op : images->ops)
        widest = std::max(widest, 32 * real(op.output.size()) + real(images->input.size()));
  }
  if (workload.sample == SampleKind::sequence) {
    const Transformer& m = workload.transformer;
    const double experts = std::max(1.0, real(m.experts_per_token));
    widest = std::max({real(m.vocabulary), 8 * experts * (real(m.ffn) + real(m.hidden)),
                       real(m.query_width()), real(m.heads) * real(how.seq_length)});
  }
  const double numbers = real(how.micro_batch) * real(how.seq_length) * widest;
  if (numbers > 1e16)
    problems.push_back({{},
                        fmt::format("micro_batch_size {} × seq_length {} makes tensors of {:.1e} "
                                    "numbers; at most 1e16 are counted here",
                                    how.micro_batch, how.seq_length, numbers)});
}

}  // namespace

std::int64_t padded_vocabulary(std::int64_t words, std::int64_t tensor) {
  if (tensor == 1) return words;
  const std::int64_t unit = 128 * tensor;
  return (words + unit - 1) / unit * unit;
}

Sharding sharding_of(const Workload& workload, const Parallelism& parallelism,
                     const Training& training) {
  const auto whole = [](std::size_t number) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(number, std::uint64_t{1} << 40));
  };
  Sharding how{.micro_batch = whole(training.micro_batch_size),
               .seq_length = workload.seq_length,
               .tensor = whole(parallelism.tensor),
               .context = whole(parallelism.context),
               .expert = whole(parallelism.expert),
               .sequence_parallel = parallelism.sequence_parallel && parallelism.tensor > 1,
               .ring_attention =
                   parallelism.context_exchange == ContextExchange::ring && parallelism.context > 1,
               .expert_capacity = parallelism.expert_capacity,
               .expert_imbalance = parallelism.expert_imbalance,
               .precision = training.precision,
               .gradients_in_fp32 = training.gradients_in_fp32 || training.autocast,
               .flash_attention = training.flash_attention,
               .dropout = training.dropout > 0};
  if (training.seq_length > 0 && workload.sample == SampleKind::sequence)
    how.seq_length = whole(training.seq_length);
  check_sharding(workload, how);
  return how;
}

SplitNumbers split_numbers(const Workload& workload, std::int64_t seq_length) {
  if (workload.sample != SampleKind::sequence) return {.layers = workload.layers.size()};
  const Transformer& m = workload.transformer;
  const auto size = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  return {.layers = size(m.layers),
          .heads = size(m.heads),
          .kv_heads = size(m.kv_heads),
          .intermediate = size(m.ffn),
          .experts = size(m.experts),
          .seq_length = size(seq_length)};
}

std::vector<KeyProblem> sharding_problems(const Workload& workload, const Sharding& how) {
  for (const auto& [number, name, key] : {std::tuple{how.micro_batch, "mbs", mbs_key},
                                          {how.seq_length, "seq_length", seq_key},
                                          {how.tensor, "tp", tp_key},
                                          {how.context, "cp", cp_key},
                                          {how.expert, "ep", ep_key}})
    if (number < 1) return {{{key}, fmt::format("{} is at least 1", name)}};
  SplitNumbers numbers = split_numbers(workload, how.seq_length);
  numbers.layers = 0;  // stages are not known here
  const auto size = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  std::vector<KeyProblem> problems = model_problems({.tensor = size(how.tensor),
                                                     .context = size(how.context),
                                                     .expert = size(how.expert),
                                                     .sequence_parallel = how.sequence_parallel},
                                                    numbers);
  if (workload.sample == SampleKind::sequence)
    check_transformer(workload, how, problems);
  else
    check_plain(workload, how, problems);
  check_size(workload, how, problems);
  return problems;
}

void check_sharding(const Workload& workload, const Sharding& how) {
  std::vector<Problem> problems;
  for (const KeyProblem& problem : sharding_problems(workload, how))
    problems.push_back({{}, problem.message});
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace rehearse
