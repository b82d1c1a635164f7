// Fills and reads the buffers of a bound step: first parameters, the batches of
// a seeded synthetic task, losses, parameters as whole tensors. Everything
// depends on the seed and on the place in the whole model or batch, never on
// the layout.
//
//   vectors    x even in ±1, label = the class whose own random vector x agrees
//   with most sequences  each token is mostly a fixed permutation of the one
//   before, at times a random one;
//              the target is the next token
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strategies/binding/bind.hpp"

namespace rehearse {

/// The bytes of a slice on a rank; none where the rank's memory is in another
/// process.
using RankMemory = std::function<std::span<std::byte>(Rank, const Slice&)>;

/// Parameters, and a StepState for each rank; all else begins as zeros.
void fill_parameters(const BoundStep& step, const TrainingNumbers& numbers,
                     const RankMemory& memory);
/// The inputs of training step `number`, from 0, and of those that the program
/// runs behind it.
void fill_batch(const BoundStep& step, const Workload& workload, const TrainingNumbers& numbers,
                std::uint64_t number, const RankMemory& memory);
/// The mean over the global batch of each training step that the program has
/// run; of ranks in this process their share of it.
std::vector<double> read_losses(const BoundStep& step, const RankMemory& memory);

/// What a step with dynamic loss scaling has done: the same on all ranks.
struct ScaledLoss {
  double scale = 1;
  bool skipped = false;  // a gradient overflowed: nothing was updated
  friend bool operator==(const ScaledLoss&, const ScaledLoss&) = default;
};
/// Nothing if it does not scale, or no rank is in this process.
std::optional<ScaledLoss> read_scaled_loss(const BoundStep& step, const RankMemory& memory);

struct NamedTensor {
  std::string name;  // "block 3 mlp.up"
  std::vector<float> values;
  friend bool operator==(const NamedTensor&, const NamedTensor&) = default;
};
/// The whole model, from the ranks that are up to date.
std::vector<NamedTensor> read_parameters(const BoundStep& step, const Workload& workload,
                                         const RankMemory& memory);

/// One sample of the synthetic task.
struct VectorSample {
  std::vector<float> x;
  std::int32_t label = 0;
};
/// Labels are the largest of `classes` sums that a sample's first numbers have with drawn weights.
class VectorTask {
 public:
  VectorTask(std::uint64_t seed, std::int64_t width, std::int64_t classes);
  std::vector<float> vector(std::uint64_t number) const;
  std::int32_t label(std::span<const float> x) const;
  VectorSample sample(std::uint64_t number) const;

 private:
  std::uint64_t seed_;
  std::size_t width_, looked_at_;
  std::vector<double> weights_;  // by class, then place
};
/// `length` + 1 tokens: inputs are all but the last, targets all but the first.
std::vector<std::int32_t> draw_sequence(std::uint64_t seed, std::uint64_t number,
                                        std::int64_t length, std::int64_t words);

}  // namespace rehearse
