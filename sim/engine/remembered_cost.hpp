// A cost model that computes each kernel's time once: a step has millions of kernels and a few
// dozen different ones.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "sim/engine/executor.hpp"

namespace rehearse {

/// The times of another model. For one thread: it remembers.
class RememberedCost final : public CostModel {
 public:
  /// `model`, and the devices it is asked about, must outlive it.
  explicit RememberedCost(const CostModel& model) : model_{model} {}
  Seconds compute(const Compute& work, const Accelerator& device) const override;

 private:
  struct Key {
    Compute work;
    const Accelerator* device = nullptr;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  const CostModel& model_;
  mutable std::unordered_map<Key, Seconds, Hash> known_;
};

}  // namespace rehearse
