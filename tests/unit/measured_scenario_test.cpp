// Rows of published steps become scenarios: what their frameworks do where a column is silent.
#include "tools/accuracy/measured_scenario.hpp"

#include <gtest/gtest.h>

#include "tools/accuracy/measured_rows.hpp"

namespace rehearse::measured_scenario_test {
namespace {

TrainingMeasured llama_13b(std::size_t pp) {
  TrainingMeasured row;
  row.framework = "aa-scaling";
  row.variant = "fa2";
  row.model_type = "llama";
  row.precision = "bf16";
  row.layers = 40;
  row.hidden = 5120;
  row.heads = row.kv_heads = 40;
  row.ffn_hidden = 13824;
  row.vocab = 32000;
  row.seq_len = 2048;
  row.tp = row.dp = row.cp = row.ep = row.vpp = row.micro_batch = 1;
  row.pp = pp;
  row.global_batch = 8;
  row.zero_shard_ranks = 1;
  return row;
}

// 43 modules on 2 stages are 22 and 21: an embedding and 21 blocks; 19, the norm and the head.
TEST(MeasuredScenario, StagesAreCutByModules) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(step_of(llama_13b(2)).scenario.parallelism.layers_per_stage, (Counts{21, 19}));
  EXPECT_EQ(step_of(llama_13b(4)).scenario.parallelism.layers_per_stage, (Counts{10, 11, 11, 8}));
  EXPECT_TRUE(step_of(llama_13b(1)).scenario.parallelism.layers_per_stage.empty());
  TrainingMeasured other = llama_13b(2);
  other.framework = "megatron-lm";
  EXPECT_TRUE(step_of(other).scenario.parallelism.layers_per_stage.empty());
}

TEST(MeasuredScenario, WhatIsNotOverlappedIsWaitedFor) {
  TrainingMeasured row = llama_13b(1);
  row.framework = "megatron-lm";
  EXPECT_TRUE(step_of(row).scenario.parallelism.async_tensor_all_reduce);
  row.tp_overlap = false;
  EXPECT_FALSE(step_of(row).scenario.parallelism.async_tensor_all_reduce);
  row.zero_stage = 3;
  row.overlap_param_gather = false;
  EXPECT_EQ(step_of(row).scenario.parallelism.prefetch_layers, 0u);
  row.overlap_param_gather = true;
  EXPECT_EQ(step_of(row).scenario.parallelism.prefetch_layers, 1u);
}

TEST(MeasuredScenario, JobsMayHaveWaitedForEveryKernel) {
  TrainingMeasured row = llama_13b(1);
  row.framework = "megatron-deepspeed";
  EXPECT_FALSE(step_of(row).scenario.training.launch_blocking);
  row.variant = "even";
  EXPECT_TRUE(step_of(row).scenario.training.launch_blocking);
}

}  // namespace
}  // namespace rehearse::measured_scenario_test
