// Small trainings for tests: an MLP whose layers are all alike, kernels that cost what a test says,
// machines on which nothing else does.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/predict/predictor.hpp"
#include "topology/generators.hpp"

namespace rehearse {

/// Products with weights cost what is given; everything else, and products one number wide,
/// nothing.
class ProductCost final : public CostModel {
 public:
  /// Of a forward product and of one for the gradient of its input, and of one for its weights.
  ProductCost(Time product, Time weights, std::int64_t samples)
      : product_{product}, weights_{weights}, samples_{samples} {}

  Seconds compute(const Compute& work, const Accelerator&) const override {
    const Gemm& shape = work.gemm;
    if (std::min({shape.m, shape.n, shape.k}) <= 1) return Seconds{0};
    return (shape.k == samples_ ? weights_ : product_).seconds();
  }

 private:
  Time product_, weights_;
  std::int64_t samples_;
};

/// Every kernel that does anything takes as long.
class Equal final : public CostModel {
 public:
  explicit Equal(Time time) : time_{time} {}
  Seconds compute(const Compute& work, const Accelerator&) const override {
    return work.flops.count() == 0 && work.traffic == Bytes{0} ? Seconds{0} : time_.seconds();
  }

 private:
  Time time_;
};

/// An MLP of `count` layers that cost the same forward and back. The first layer of an MLP has no
/// gradient of its input to compute: here it is one more layer, one number wide, which costs
/// nothing.
struct EqualLayers {
  std::size_t count = 1;
  std::int64_t width = 64, samples = 4;

  Workload workload() const {
    std::vector<std::int64_t> sizes(count + 2, width);
    sizes.front() = 1;
    return mlp_workload("equal", sizes, false);
  }
  /// `each` layers on every stage, and the free one on the first.
  std::vector<std::size_t> per_stage(std::size_t stages) const {
    std::vector<std::size_t> layers(stages, count / stages);
    ++layers.front();
    return layers;
  }
  std::int64_t parameters() const {
    return width + static_cast<std::int64_t>(count) * width * width;
  }
  /// Of one micro-batch between two layers, in 16 bits.
  Bytes activation() const { return Bytes{2 * samples * width}; }
  /// Of one layer, in 16 bits.
  Bytes weights() const { return Bytes{2 * width * width}; }

  /// bf16 and Adam, `microbatches` of them on every data-parallel rank.
  Scenario scenario(std::size_t microbatches) const {
    Scenario scenario;
    scenario.training.micro_batch_size = static_cast<std::size_t>(samples);
    scenario.training.global_batch_size = static_cast<std::size_t>(samples) * microbatches;
    scenario.training.scaling = Scaling::weak;
    return scenario;
  }
};

/// GPUs on one switch, whose kernels do not feel the communication beside them.
inline Topology calm_star(std::size_t gpus, Cable cable) {
  Topology machine = star(gpus, cable);
  machine.accelerators.resize(1);
  machine.accelerators.front().communication_share = 0;
  return machine;
}

/// Communication costs nothing.
inline Topology free_star(std::size_t gpus) {
  return calm_star(gpus, {BytesPerSecond{1e21}, Time{}});
}

/// How gtest shows a time.
inline void PrintTo(Time time, std::ostream* out) { *out << time.ps() << " ps"; }

/// When the ops of an action began and ended.
inline Timeline::Span span_of(const ActionOps& ops, const Timeline& timeline) {
  Timeline::Span whole{Time::never(), Time{}};
  for (std::size_t i = index(ops.begin); i < index(ops.end); ++i) {
    whole.begin = std::min(whole.begin, timeline.spans[i].begin);
    whole.end = std::max(whole.end, timeline.spans[i].end);
  }
  return whole;
}

}  // namespace rehearse
