// Where parameters lie. A stage has one run of numbers, and its gradients, its
// optimizer's moments and their updates lie in runs of the same shape, each in
// a buffer of its own:
//
//   [ last layer's tensors | … | first layer's tensors ]     the order of the
//   backward pass, so that [ bucket 0 | bucket 1 | bucket 2 |    …            ]
//   buckets are slices
//
// Where the last stage holds a copy of the first one's table (tied embeddings),
// the two runs share their buffers' numbers and begin so that the table has the
// same place in both: one collective names one slice for all its ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "strategies/binding/parameters.hpp"
#include "strategies/plan/step_plan.hpp"

namespace rehearse {

/// A run of numbers in the buffers of a group of stages.
struct Run {
  std::uint32_t group = 0;
  std::int64_t begin = 0, size = 0;
};

class ModelLayout {
 public:
  ModelLayout(const StepPlan& plan, const Workload& workload, const Sharding& how);
  /// One stage with all layers; layer l begins with number `begin[l]` of its run of `size`.
  ModelLayout(const Workload& workload, const Sharding& how, std::span<const std::int64_t> begin,
              std::int64_t size);

  std::uint32_t first_layer(std::uint32_t stage) const { return first_layer_[stage]; }
  std::uint32_t stage_of(std::uint32_t layer) const { return stage_of_[layer]; }
  std::uint32_t layers() const { return static_cast<std::uint32_t>(stage_of_.size()); }
  const std::vector<ParameterTensor>& tensors(std::uint32_t layer) const { return tensors_[layer]; }
  bool has(std::uint32_t layer, std::string_view name) const;
  const ParameterTensor& tensor(std::uint32_t layer, std::string_view name) const;
  /// Of a tensor, by its number in the layer or its name; and of a whole stage.
  Run run(std::uint32_t layer, std::size_t number) const;
  Run run(std::uint32_t layer, std::string_view name) const;
  Run run(std::uint32_t stage) const { return stages_[stage]; }
  /// The layer that holds the table that a tied head reads on its own pipeline
  /// rank.
  std::uint32_t table_of_head() const { return table_of_head_; }
  bool is_tied() const { return is_tied_; }

 private:
  std::size_t number(std::uint32_t layer, std::string_view name) const;

  std::vector<std::uint32_t> first_layer_, stage_of_;
  std::vector<std::vector<ParameterTensor>> tensors_;  // by layer
  std::vector<std::vector<std::int64_t>> begin_;       // by layer and tensor, in its stage's run
  std::vector<Run> stages_;
  std::uint32_t table_of_head_ = 0;
  bool is_tied_ = false;
};

}  // namespace rehearse
