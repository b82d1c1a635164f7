// A key that does nothing is a mistake that somebody should hear of.
#include "strategies/predict/method_problems.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/layers/optimizer.hpp"

namespace rehearse {

namespace {

using KeyProblems = std::vector<KeyProblem>;

void tell(KeyProblems& problems, std::initializer_list<std::string_view> keys,
          std::string_view message) {
  KeyProblem& problem = problems.emplace_back();
  for (const std::string_view key : keys) problem.keys.emplace_back(key);
  problem.message = message;
}

void check_ranks(const char* key, const std::vector<std::size_t>& ranks, std::size_t world,
                 KeyProblems& problems) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] >= world)
      tell(problems, {key},
           fmt::format("{} names rank {}, but ranks are 0 to {}", key, ranks[i], world - 1));
    else if (std::find(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(i), ranks[i]) !=
             ranks.begin() + static_cast<std::ptrdiff_t>(i))
      tell(problems, {key}, fmt::format("{} names rank {} twice", key, ranks[i]));
  }
}

// Who, and how: one without the other does nothing.
void check_pair(const char* who, bool has_who, const char* how, bool has_how,
                KeyProblems& problems) {
  if (has_who && !has_how)
    tell(problems, {who}, fmt::format("{} without {} changes nothing", who, how));
  if (has_how && !has_who)
    tell(problems, {how}, fmt::format("{} without {} changes nothing", how, who));
}

}  // namespace

std::vector<KeyProblem> imperfection_problems(const Imperfection& imperfection, std::size_t world) {
  KeyProblems problems;
  check_ranks("slow_ranks", imperfection.slow_ranks, world, problems);
  check_ranks("slow_cables", imperfection.slow_cables, world, problems);
  check_ranks("pause_ranks", imperfection.pause_ranks, world, problems);
  check_pair("slow_ranks", !imperfection.slow_ranks.empty(), "slow_rank_factor",
             imperfection.slow_rank_factor != 1, problems);
  const bool slows_cables =
      imperfection.slow_cable_factor != 1 || imperfection.slow_cable_latency > Time{};
  if (!imperfection.slow_cables.empty() && !slows_cables)
    tell(problems, {"slow_cables"},
         "slow_cables without slow_cable_factor or slow_cable_latency changes nothing");
  if (imperfection.slow_cables.empty() && slows_cables)
    tell(problems, {"slow_cable_factor", "slow_cable_latency"},
         "slow_cable_factor and slow_cable_latency need slow_cables: of which ranks");
  const bool pauses = imperfection.pause_length > Time{},
             repeats = imperfection.pause_every > Time{};
  check_pair("pause_length", pauses, "pause_every", repeats, problems);
  if ((!imperfection.pause_ranks.empty() || imperfection.pause_together) && !pauses)
    tell(problems, {"pause_ranks", "pause_together"},
         "nobody pauses: pause_every and pause_length say when and for how long");
  const bool is_drawn = imperfection.kernel_jitter > 0 || imperfection.rank_jitter > 0 ||
                        imperfection.network_jitter > 0 || pauses;
  if (imperfection.seeds > 1 && !is_drawn)
    tell(problems, {"seeds"},
         fmt::format("{} seeds would give one answer {} times: nothing is drawn; "
                     "kernel_jitter, rank_jitter, network_jitter and pauses are",
                     imperfection.seeds, imperfection.seeds));
  return problems;
}

namespace {

void check_dgc(const Compression& how, const Training& training, KeyProblems& problems) {
  const OptimizerKind optimizer = training.optimizer;
  if (optimizer != OptimizerKind::sgd && optimizer != OptimizerKind::momentum)
    tell(problems, {"optimizer", "method"},
         "dgc is for optimizer sgd or momentum: it corrects that momentum for what is sent late, "
         "and there is no such correction for others");
  if (!how.momentum_correction && how.factor_masking && optimizer == OptimizerKind::momentum)
    tell(problems, {"momentum_correction"},
         "factor_masking forgets velocities that only momentum_correction keeps: switch off both");
  if (how.warmup_epochs > 0 && training.epochs == 0)
    tell(problems, {"warmup_epochs"},
         "warmup_epochs needs epochs in [training]: how many there are in all");
  else if (how.warmup_epochs > training.epochs)
    tell(problems, {"warmup_epochs"},
         fmt::format("warmup_epochs {} are more than all {} epochs", how.warmup_epochs,
                     training.epochs));
}

}  // namespace

std::vector<KeyProblem> compression_problems(const Scenario& scenario, const Placement& placement) {
  const Compression& how = scenario.compression;
  const Parallelism& parallel = scenario.parallelism;
  const Training& training = scenario.training;
  KeyProblems problems;
  if (how.method == CompressionKind::none) return problems;
  if (placement.size(Replicas::all) == 1)
    tell(problems, {"method"},
         "compression with dp 1: no gradients travel, there is nothing to compress");
  if (parallel.zero_stage > 0)
    tell(problems, {"method"},
         fmt::format("compression with zero_stage {}: ZeRO gives each rank the sum of its own part "
                     "of the gradients, and compressed ones are not summed part by part",
                     parallel.zero_stage));
  if (parallel.broadcast_parameters)
    tell(problems, {"broadcast_parameters"},
         "broadcast_parameters is not counted where gradients are compressed: leave it out");
  if (how.method == CompressionKind::dgc) check_dgc(how, training, problems);
  if (how.method == CompressionKind::fp16 && state_format(training).gradient == Bytes{2})
    tell(problems, {"method"},
         fmt::format("gradients of {} have 16 bits already: fp16 is for gradients in fp32",
                     to_string(training.precision)));
  return problems;
}

std::vector<KeyProblem> precision_problems(const Training& training) {
  KeyProblems problems;
  const bool in_16_bits =
      training.precision == Precision::fp16 || training.precision == Precision::bf16;
  if (training.loss_scaling == LossScaling::dynamic && training.precision != Precision::fp16)
    tell(problems, {"loss_scaling", "dtype"},
         fmt::format("loss_scaling is for fp16, whose smallest number is 6e-8; {} "
                     "has the range of fp32",
                     to_string(training.precision)));
  if (training.autocast && !in_16_bits)
    tell(problems, {"autocast", "dtype"},
         fmt::format("autocast is for fp16 and bf16; in {} there is nothing to cast",
                     to_string(training.precision)));
  return problems;
}

}  // namespace rehearse
