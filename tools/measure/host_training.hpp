// The numbers of a real training between its steps, in the memory of the ranks that are here:
// parameters to begin with, a batch before each step, losses behind it, checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strategies/binding/training_data.hpp"
#include "tools/measure/host_ranks.hpp"

namespace rehearse {

class HostTraining {
 public:
  /// All outlive it. The memory is empty where a rank is not here; `settle` is called when what
  /// was read or written through it must be where it belongs, as on a device.
  HostTraining(const BoundStep& step, const Workload& workload, const TrainingNumbers& numbers,
               const HostRanks& ranks, RankMemory memory, std::function<void()> settle);

  /// Parameters as the seed has them, or as a checkpoint left them (InputError if it is another
  /// training's); the number of training steps behind it.
  std::uint64_t begin(const std::string& checkpoint);
  void fill_batch(std::uint64_t number);

  /// What happened in a run of the program, agreed upon by all processes.
  struct Told {
    std::vector<double> losses;  // of its training steps: means over the global batch
    std::optional<ScaledLoss> scaled;
    bool stops = false;  // somebody was asked to stop
  };
  Told tell(bool stops) const;

  /// All that outlasts a step, of the ranks that are here; and back.
  std::string kept() const;
  void put_back(const std::string& bytes);
  /// Written whole or not at all, by the first process.
  void save(const std::string& path, std::uint64_t steps_done) const;

 private:
  const BoundStep& step_;
  const Workload& workload_;
  const TrainingNumbers& numbers_;
  const HostRanks& ranks_;
  RankMemory memory_;
  std::function<void()> settle_;
};

/// Of the ranks that are here, with room for what no transfer and no kernel touches.
RankMemory memory_of_training(const BoundStep& step, const HostRanks& ranks, HostMemory& memory);

}  // namespace rehearse
