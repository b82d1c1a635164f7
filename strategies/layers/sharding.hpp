// How the layers of a workload are cut over ranks, in numbers, and whether these divide.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/precision.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/workload/workload.hpp"
#include "strategies/placement/placement.hpp"

namespace rehearse {

/// How the layers of a workload are cut, and in which numbers.
struct Sharding {
  std::int64_t micro_batch = 1;  // samples
  std::int64_t seq_length = 1;   // of the whole sequence
  std::int64_t tensor = 1, context = 1, expert = 1;
  bool sequence_parallel = false;
  bool ring_attention = false;  // keys and values go round the context ranks in blocks
  double expert_capacity = 0, expert_imbalance = 1;  // as in Parallelism
  Precision precision = Precision::bf16;
  bool gradients_in_fp32 = false;
  bool flash_attention = true;
  bool dropout = false;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// What a scenario asks for. Throws InputError as check_sharding does.
Sharding sharding_of(const Workload&, const Parallelism&, const Training&);

/// What of a workload stages, tensor ranks and context ranks divide, for model_problems().
SplitNumbers split_numbers(const Workload&, std::int64_t seq_length);

/// All that does not divide, with the arithmetic. Layers over stages are not looked at.
std::vector<KeyProblem> sharding_problems(const Workload&, const Sharding&);
/// Throws InputError with everything in sharding_problems().
void check_sharding(const Workload&, const Sharding&);

/// The vocabulary as the ranks hold it: padded to a multiple of 128 × tensor ranks, as Megatron
/// does, when it is split at all.
std::int64_t padded_vocabulary(std::int64_t words, std::int64_t tensor);

}  // namespace rehearse
