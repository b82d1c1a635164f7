// The lossless combinations of strategies that the equivalence tests train: on the interpreter, and
// on emulated GPUs.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/equivalence/trainings.hpp"
#include "tests/support/places.hpp"

namespace rehearse {

enum class Model : std::uint8_t { mlp, gpt, llama };

using Change = std::function<void(Scenario&)>;

struct Row {
  std::string name;
  Model model;
  std::size_t ranks, micro_batch;
  std::vector<Change> changes = {};
};
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

inline constexpr std::size_t global_batch = 8, steps = 20;

// GPT's keys have a bias whose gradient is zero but for rounding. Adam would
// divide that noise by its own size, and every order of additions would train
// another bias; momentum leaves it small.
inline SmallTraining on_one_device(Model model, OptimizerKind optimizer) {
  SmallTraining training{.model = model == Model::mlp   ? small_mlp()
                                  : model == Model::gpt ? small_gpt(4)
                                                        : small_llama(4)};
  Training& how = training.scenario.training;
  how.precision = Precision::fp32;
  how.global_batch_size = how.micro_batch_size = global_batch;
  how.optimizer = optimizer;
  training.numbers.learning_rate = optimizer == OptimizerKind::sgd    ? 0.1
                                   : optimizer == OptimizerKind::lars ? 1
                                   : optimizer == OptimizerKind::adam ? 0.001
                                                                      : 0.01;
  return training;
}

inline SmallTraining training_of(const Row& row) {
  SmallTraining training = on_one_device(
      row.model, row.model == Model::gpt ? OptimizerKind::momentum : OptimizerKind::adam);
  training.ranks = row.ranks;
  training.scenario.training.micro_batch_size = row.micro_batch;
  for (const Change& change : row.changes) change(training.scenario);
  const SmallTraining same = on_one_device(row.model, training.scenario.training.optimizer);
  training.numbers = same.numbers;
  return training;
}

inline Change pipeline(std::string schedule, std::size_t chunks = 1, std::size_t ranks = 2) {
  return [=](Scenario& s) {
    s.parallelism.pipeline = ranks;
    s.parallelism.schedule = schedule;
    s.parallelism.virtual_pipeline = chunks;
  };
}
inline Change tensor(std::size_t ranks = 2) {
  return [=](Scenario& s) { s.parallelism.tensor = ranks; };
}
inline Change sequence() {
  return [](Scenario& s) { s.parallelism.tensor = 2, s.parallelism.sequence_parallel = true; };
}
inline Change zero(std::size_t stage, std::size_t shard_ranks = 0) {
  return [=](Scenario& s) {
    s.parallelism.zero_stage = stage;
    s.parallelism.zero_shard_ranks = shard_ranks;
  };
}
inline Change overlap(Bytes bucket = 2000_B) {
  return [=](Scenario& s) {
    s.parallelism.overlap_grad_reduce = true;
    s.parallelism.overlap_param_gather = s.parallelism.zero_stage > 0;
    s.parallelism.bucket_size = bucket;
  };
}
inline Change recompute(Recompute how) {
  return [=](Scenario& s) { s.parallelism.recompute = how; };
}
// In PyTorch's notation, with the backward pass of one micro-batch in halves.
inline Change written_schedule() {
  return [](Scenario& s) {
    s.parallelism.pipeline = 2;
    s.parallelism.schedule_csv = REHEARSE_SOURCE_DIR "/tests/equivalence/schedule.csv";
  };
}
inline Change in_parts() {
  return [](Scenario& s) { s.training.flash_attention = false; };
}
inline Change by(OptimizerKind optimizer) {
  return [=](Scenario& s) { s.training.optimizer = optimizer; };
}
inline Change clip(double norm) {
  return [=](Scenario& s) { s.training.clip_grad = norm; };
}

// Masks by counter.
inline Change dropping() {
  return [](Scenario& s) { s.training.dropout = 0.1; };
}

// clang-format off
inline std::vector<Row> mlp_rows() {
  using enum OptimizerKind;
  constexpr Model mlp = Model::mlp;
  return {
    {"mlp_dp4", mlp, 4, 2},
    {"mlp_dp2_accumulating", mlp, 2, 1},
    {"mlp_dp2_overlap", mlp, 2, 2, {overlap(400_B)}},
    {"mlp_dp8_sgd", mlp, 8, 1, {by(sgd)}},
    {"mlp_dp2_momentum", mlp, 2, 2, {by(momentum)}},
    {"mlp_dp2_lars", mlp, 2, 4, {by(lars)}},
    {"mlp_dp2_lamb", mlp, 2, 2, {by(lamb), overlap()}},
    {"mlp_dp2_clipped", mlp, 2, 2, {clip(0.05)}},
    {"mlp_dp2_broadcast", mlp, 2, 4, {[](Scenario& s) {
       s.parallelism.broadcast_parameters = true; }}},
    {"mlp_tp2", mlp, 2, 8, {tensor()}},
    {"mlp_tp4_clipped", mlp, 4, 2, {tensor(4), clip(0.05)}},
    {"mlp_pp2_tp2", mlp, 4, 2, {tensor(), pipeline("1F1B")}},
    {"mlp_zero1_dp3", mlp, 3, 2, {zero(1), [](Scenario& s) { s.training.global_batch_size = 6; }}},
    {"mlp_zero2_clipped", mlp, 4, 1, {zero(2), clip(0.05)}},
    {"mlp_zero3_overlap", mlp, 4, 1, {zero(3), overlap()}},
    {"mlp_zero2_broadcast", mlp, 2, 2, {zero(2), [](Scenario& s) {
       s.parallelism.broadcast_parameters = true; }}},
    {"mlp_recompute_zbh1", mlp, 2, 2, {pipeline("ZBH1"), recompute(Recompute::full)}},
  };
}

inline std::vector<Row> gpt_rows() {
  constexpr Model gpt = Model::gpt;
  return {
    {"gpt_dp2", gpt, 2, 4},
    {"gpt_dp4_overlap_accumulating", gpt, 4, 1, {overlap()}},
    {"gpt_tp2", gpt, 2, 4, {tensor()}},
    {"gpt_tp4", gpt, 4, 8, {tensor(4)}},
    {"gpt_tp2_sequence", gpt, 2, 2, {sequence()}},
    {"gpt_gpipe", gpt, 2, 1, {pipeline("GPipe")}},
    {"gpt_1f1b", gpt, 2, 1, {pipeline("1F1B")}},
    {"gpt_pp4_1f1b", gpt, 4, 1, {pipeline("1F1B", 1, 4)}},
    {"gpt_interleaved", gpt, 2, 1, {pipeline("Interleaved1F1B", 2)}},
    {"gpt_looped", gpt, 2, 2, {pipeline("LoopedBFS", 2)}},
    {"gpt_zbh1", gpt, 2, 1, {pipeline("ZBH1")}},
    {"gpt_interleaved_zero_bubble", gpt, 2, 1, {pipeline("InterleavedZeroBubble", 2)}},
    {"gpt_zbv", gpt, 2, 1, {pipeline("ZBVZeroBubble")}},
    {"gpt_dualpipev", gpt, 2, 1, {pipeline("DualPipeV")}},
    {"gpt_schedule_csv", gpt, 2, 2, {written_schedule()}},
    {"gpt_no_pipeline", gpt, 2, 2, {pipeline("none")}},
    {"gpt_pp2_dp2_overlap", gpt, 4, 1, {pipeline("1F1B"), overlap()}},
    {"gpt_tp2_pp2_dp2_sequence", gpt, 8, 1, {sequence(), pipeline("1F1B"), overlap()}},
    {"gpt_selective", gpt, 1, 2, {recompute(Recompute::selective)}},
    {"gpt_plain_attention", gpt, 2, 2, {in_parts()}},
    {"gpt_plain_attention_selective_tp2", gpt, 2, 2,
     {in_parts(), sequence(), recompute(Recompute::selective)}},
    {"gpt_recompute_tp2", gpt, 2, 2, {sequence(), recompute(Recompute::full)}},
    {"gpt_fused_kernels", gpt, 2, 2, {overlap(), [](Scenario& s) {
       s.training.fusion = Fusion::elementwise; }}},
    {"gpt_sgd", gpt, 2, 2, {by(OptimizerKind::sgd)}},
    {"gpt_not_clipped", gpt, 2, 2, {clip(0)}},
    {"gpt_uneven_stages", gpt, 2, 1, {pipeline("1F1B"), [](Scenario& s) {
       s.parallelism.layers_per_stage = {3, 1}; }}},
    {"gpt_other_order", gpt, 8, 1, {tensor(), pipeline("GPipe"), [](Scenario& s) {
       s.parallelism.order = "dp-pp-tp"; }}},
  };
}

inline std::vector<Row> llama_rows() {
  constexpr Model llama = Model::llama;
  const Change full = recompute(Recompute::full), selective = recompute(Recompute::selective);
  return {
    {"llama_dp2_lamb", llama, 2, 2, {by(OptimizerKind::lamb)}},
    {"llama_dp2_lars_overlap", llama, 2, 2, {by(OptimizerKind::lars), overlap()}},
    {"llama_tp2_sequence", llama, 2, 4, {sequence()}},
    {"llama_plain_attention_recompute", llama, 2, 4, {in_parts(), full}},
    {"llama_zero1_overlap", llama, 4, 1, {zero(1), overlap()}},
    {"llama_zero1_tp2_sequence", llama, 4, 2, {zero(1), sequence()}},
    {"llama_zero1_zbv", llama, 4, 1, {zero(1), pipeline("ZBVZeroBubble"), overlap()}},
    {"llama_zero2_accumulating", llama, 2, 1, {zero(2)}},
    {"llama_zero2_overlap", llama, 4, 1, {zero(2), overlap()}},
    {"llama_zero2_shards_and_copies", llama, 4, 2, {zero(2, 2)}},
    {"llama_zero3", llama, 4, 2, {zero(3)}},
    {"llama_zero3_overlap_accumulating", llama, 2, 1, {zero(3), overlap(), [](Scenario& s) {
       s.parallelism.prefetch_layers = 2; }}},
    {"llama_zero3_recomputing", llama, 2, 2, {zero(3), overlap(), full}},
    {"llama_zero3_tp2_pp2", llama, 8, 1, {zero(3), tensor(), pipeline("1F1B")}},
    {"llama_zero1_shards_and_copies", llama, 8, 1, {zero(1, 2), overlap()}},
    {"llama_tp2_pp2_dp2_zero1_recompute_overlap", llama, 8, 1,
     {zero(1), sequence(), pipeline("1F1B"), overlap(), full}},
    {"llama_tp2_pp2_dp2_zero1_selective_interleaved", llama, 8, 1,
     {zero(1), sequence(), pipeline("Interleaved1F1B", 2), overlap(), selective}},
    {"llama_tp2_pp2_dp2_zbh1_recompute", llama, 8, 1,
     {sequence(), pipeline("ZBH1"), overlap(), full}},
  };
}

inline std::vector<Row> dropout_rows() {
  constexpr Model gpt = Model::gpt, llama = Model::llama;
  const Change full = recompute(Recompute::full);
  return {
    {"gpt_dropout_dp2_accumulating", gpt, 2, 2, {dropping()}},
    {"gpt_dropout_tp2_sequence", gpt, 2, 2, {dropping(), sequence()}},
    {"gpt_dropout_probabilities_tp2", gpt, 2, 4, {dropping(), in_parts(), tensor()}},
    {"gpt_dropout_selective_tp2", gpt, 2, 2,
     {dropping(), in_parts(), sequence(), recompute(Recompute::selective)}},
    {"gpt_dropout_tp2_pp2_dp2_recompute", gpt, 8, 1,
     {dropping(), sequence(), pipeline("1F1B"), overlap(), full}},
    {"gpt_dropout_fused", gpt, 2, 2, {dropping(), in_parts(), [](Scenario& s) {
       s.training.fusion = Fusion::elementwise; }}},
    {"llama_dropout_zero3_recomputing", llama, 2, 2, {dropping(), zero(3), overlap(), full}},
    {"llama_dropout_zbv", llama, 2, 1, {dropping(), pipeline("ZBVZeroBubble")}},
  };
}
// clang-format on

inline std::vector<Row> rows() {
  std::vector<Row> all = mlp_rows();
  for (const std::vector<Row>& more : {gpt_rows(), llama_rows(), dropout_rows()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace rehearse
