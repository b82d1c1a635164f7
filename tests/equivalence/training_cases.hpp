// One small training of every kind of strategy, for those who hold executors to each other: threads
// to the interpreter (host_test.cpp), processes to threads (tests/host/mpi/same_trainings.cpp).
#pragma once

#include <ostream>

#include "tests/equivalence/trainings.hpp"

namespace rehearse {

struct TrainingCase {
  std::string name;
  SmallTraining training;
};
inline void PrintTo(const TrainingCase& which, std::ostream* out) { *out << which.name; }

inline SmallTraining small_training(Workload model, std::size_t ranks, std::size_t micro_batch) {
  SmallTraining training{.model = std::move(model), .ranks = ranks};
  training.scenario.training.precision = Precision::fp32;
  training.scenario.training.global_batch_size = 8;
  training.scenario.training.micro_batch_size = micro_batch;
  training.numbers.loss_scale = 0x1p+23;
  return training;
}

class TrainingCases {
 public:
  TrainingCases() {
    add_data_parallel();
    add_pipelines();
    add_lossy();
    add_narrow();
  }
  std::vector<TrainingCase> take() { return std::move(list_); }

 private:
  template <class Change>
  void add(std::string name, SmallTraining training, Change change) {
    change(training.scenario);
    list_.push_back({std::move(name), std::move(training)});
  }
  void add_data_parallel() {
    add("mlp_dp4_overlap", small_training(small_mlp(), 4, 1), [](Scenario& s) {
      s.parallelism.overlap_grad_reduce = true;
      s.parallelism.bucket_size = 400_B;
    });
    add("llama_zero3", small_training(small_llama(2), 2, 1), [](Scenario& s) {
      s.parallelism.zero_stage = 3;
      s.parallelism.overlap_grad_reduce = s.parallelism.overlap_param_gather = true;
    });
    add("gpt_tp2_sequence_parallel", small_training(small_gpt(2), 2, 4), [](Scenario& s) {
      s.parallelism.tensor = 2;
      s.parallelism.sequence_parallel = true;
      s.parallelism.recompute = Recompute::selective;
    });
    add("llama_zero2_accumulation", small_training(small_llama(1), 2, 2),
        [](Scenario& s) { s.parallelism.zero_stage = 2; });
    add("mlp_lamb", small_training(small_mlp(), 2, 4),
        [](Scenario& s) { s.training.optimizer = OptimizerKind::lamb; });
    add("gpt_dropout_tp2_sequence", small_training(small_gpt(2), 4, 2), [](Scenario& s) {
      s.parallelism.tensor = 2;
      s.parallelism.sequence_parallel = true;
      s.parallelism.recompute = Recompute::full;
      s.training.dropout = 0.1;
    });
    add("llama_zero1_shards_and_copies", small_training(small_llama(1), 4, 1), [](Scenario& s) {
      s.parallelism.zero_stage = 1;
      s.parallelism.zero_shard_ranks = 2;
    });
  }
  void add_pipelines() {
    add("gpt_zbv", small_training(small_gpt(4), 2, 1), [](Scenario& s) {
      s.parallelism.pipeline = 2;
      s.parallelism.schedule = "ZBVZeroBubble";
    });
    add("llama_tp2_pp2_dp2_zero1", small_training(small_llama(2), 8, 1), [](Scenario& s) {
      s.parallelism.tensor = s.parallelism.pipeline = 2;
      s.parallelism.sequence_parallel = true;
      s.parallelism.zero_stage = 1;
      s.parallelism.recompute = Recompute::full;
      s.parallelism.overlap_grad_reduce = s.parallelism.overlap_param_gather = true;
      s.parallelism.bucket_size = 2000_B;
    });
    add("gpt_interleaved_dp2", small_training(small_gpt(4), 4, 1), [](Scenario& s) {
      s.parallelism.pipeline = 2;
      s.parallelism.schedule = "Interleaved1F1B";
      s.parallelism.virtual_pipeline = 2;
      s.parallelism.overlap_grad_reduce = true;
    });
    add("gpt_gpipe", small_training(small_gpt(4), 2, 1), [](Scenario& s) {
      s.parallelism.pipeline = 2;
      s.parallelism.schedule = "GPipe";
    });
    add("gpt_dualpipev", small_training(small_gpt(4), 2, 1), [](Scenario& s) {
      s.parallelism.pipeline = 2;
      s.parallelism.schedule = "DualPipeV";
    });
    add("llama_tp2_zbh1", small_training(small_llama(2), 4, 1), [](Scenario& s) {
      s.parallelism.tensor = s.parallelism.pipeline = 2;
      s.parallelism.schedule = "ZBH1";
    });
  }
  void add_lossy() {
    add("mlp_dgc", small_training(small_mlp(), 2, 4), [](Scenario& s) {
      s.compression.method = CompressionKind::dgc;
      s.compression.sparsity = 0.9;
      s.training.optimizer = OptimizerKind::momentum;
    });
    add("mlp_dp4_fp16_gradients", small_training(small_mlp(), 4, 2),
        [](Scenario& s) { s.compression.method = CompressionKind::fp16; });
    add("mlp_post_local_sgd", small_training(small_mlp(), 4, 2), [](Scenario& s) {
      s.local_sgd = {
          .interval = 2, .kind = LocalInterval::post_local, .synchronous_steps = 2, .steps = 4};
    });
    add("mlp_local_sgd", small_training(small_mlp(), 2, 4),
        [](Scenario& s) { s.local_sgd.interval = 2; });
    add("mlp_dp4_int8_gradients", small_training(small_mlp(), 4, 2), [](Scenario& s) {
      s.compression.method = CompressionKind::int8;
      s.parallelism.overlap_grad_reduce = true;
      s.parallelism.bucket_size = 2000_B;
    });
  }
  // The scale begins so high that the first steps overflow.
  void add_narrow() {
    const auto scaled = [](Scenario& s) {
      s.training.precision = Precision::fp16;
      s.training.loss_scaling = LossScaling::dynamic;
    };
    add("llama_fp16_tp2_pp2_dp2_zero1", small_training(small_llama(2), 8, 1), [&](Scenario& s) {
      scaled(s);
      s.parallelism.tensor = s.parallelism.pipeline = 2;
      s.parallelism.sequence_parallel = true;
      s.parallelism.zero_stage = 1;
      s.training.gradients_in_fp32 = true;
    });
    add("gpt_fp16_pp2", small_training(small_gpt(4), 2, 1), [&](Scenario& s) {
      scaled(s);
      s.parallelism.pipeline = 2;
    });
    add("llama_bf16_zero3", small_training(small_llama(2), 2, 1), [](Scenario& s) {
      s.training.precision = Precision::bf16;
      s.parallelism.zero_stage = 3;
      s.parallelism.overlap_grad_reduce = s.parallelism.overlap_param_gather = true;
    });
    add("llama_fp16_autocast_tp2", small_training(small_llama(2), 4, 1), [&](Scenario& s) {
      scaled(s);
      s.training.autocast = true;
      s.parallelism.tensor = 2;
    });
  }
  std::vector<TrainingCase> list_;
};

inline std::vector<TrainingCase> training_cases() { return TrainingCases{}.take(); }

}  // namespace rehearse
