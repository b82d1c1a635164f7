// Offsets, from the last layer of each stage to its first.
#include "strategies/binding/layout.hpp"

#include <algorithm>

#include "sim/base/assert.hpp"

namespace rehearse {

ModelLayout::ModelLayout(const StepPlan& plan, const Workload& workload, const Sharding& how) {
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    first_layer_.push_back(static_cast<std::uint32_t>(stage_of_.size()));
    stage_of_.resize(stage_of_.size() + plan.work(s).layers.size(), s);
  }
  ASSERT(stage_of_.size() == workload.layers.size());
  begin_.resize(stage_of_.size());
  for (std::uint32_t l = 0; l < layers(); ++l) {
    tensors_.push_back(tensors_of(workload, l, how, plan.tied_copy > 0));
    std::int64_t size = 0;
    for (const ParameterTensor& tensor : tensors_.back()) size += tensor.size();
    ASSERT(size == plan.layers[l].parameters);
  }
  for (std::uint32_t s = 0; s < plan.schedule.stages; ++s) {
    Run& stage = stages_.emplace_back(Run{.group = s});
    const std::uint32_t end =
        first_layer_[s] + static_cast<std::uint32_t>(plan.work(s).layers.size());
    for (std::uint32_t l = end; l-- > first_layer_[s];)
      for (const ParameterTensor& tensor : tensors_[l]) {
        begin_[l].push_back(stage.size);
        stage.size += tensor.size();
      }
  }
  const std::uint32_t last = layers() - 1;
  is_tied_ = workload.transformer.tied;
  table_of_head_ = plan.tied_copy > 0 || !workload.transformer.tied ? last : 0;
  if (plan.tied_copy == 0) return;
  const std::int64_t here = run(0, "table").begin, there = run(last, "table").begin;
  stages_.back().group = 0;
  stages_.front().begin = std::max<std::int64_t>(0, there - here);
  stages_.back().begin = std::max<std::int64_t>(0, here - there);
}

ModelLayout::ModelLayout(const Workload& workload, const Sharding& how,
                         std::span<const std::int64_t> begin, std::int64_t size)
    : first_layer_{0},
      stage_of_(workload.layers.size(), 0),
      begin_(workload.layers.size()),
      stages_{Run{0, 0, size}},
      table_of_head_{workload.transformer.tied ? 0 : layers() - 1},
      is_tied_{workload.transformer.tied} {
  ASSERT(begin.size() == workload.layers.size());
  for (std::uint32_t l = 0; l < layers(); ++l) {
    tensors_.push_back(tensors_of(workload, l, how, false));
    std::int64_t at = begin[l];
    for (const ParameterTensor& tensor : tensors_.back()) {
      begin_[l].push_back(at);
      at += tensor.size();
    }
    ASSERT(at <= size);
  }
}

std::size_t ModelLayout::number(std::uint32_t layer, std::string_view name) const {
  const auto& tensors = tensors_[layer];
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [&](const ParameterTensor& tensor) { return tensor.name == name; });
  return static_cast<std::size_t>(found - tensors.begin());
}

bool ModelLayout::has(std::uint32_t layer, std::string_view name) const {
  return number(layer, name) < tensors_[layer].size();
}

const ParameterTensor& ModelLayout::tensor(std::uint32_t layer, std::string_view name) const {
  ASSERT(has(layer, name));
  return tensors_[layer][number(layer, name)];
}

Run ModelLayout::run(std::uint32_t layer, std::size_t number) const {
  const Run& stage = stages_[stage_of_[layer]];
  return {stage.group, stage.begin + begin_[layer][number], tensors_[layer][number].size()};
}

Run ModelLayout::run(std::uint32_t layer, std::string_view name) const {
  ASSERT(has(layer, name));
  return run(layer, number(layer, name));
}

}  // namespace rehearse
