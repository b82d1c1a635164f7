// What every stage of a training step has to do, before it is known who plays it and when: tapes of
// kernels, the collectives they use, what is handed over, what is held.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/workload/workload.hpp"
#include "strategies/layers/tape.hpp"
#include "strategies/layers/tensor_parallel.hpp"
#include "strategies/placement/placement.hpp"
#include "strategies/schedules/schedule.hpp"

namespace rehearse {

/// Which groups a collective runs on.
enum class Family : std::uint8_t {
  tensor,
  context,
  expert,
  replicas,
  shards,
  copies,
  expert_replicas,  // who hold the same experts
  ends,             // of the pipeline: the same place in two of its ranks
  stages,           // the same place in all of them
};
Dimension dimension_of(Family family);
/// Whether its groups reach over several pipeline ranks.
bool is_joint(Family family);

/// A collective on every group of a family.
struct CollectiveUse {
  Family family{};
  CollectiveKind kind{};
  Bytes size;
  std::uint32_t first = 0, last = 0;  // of Family::ends: the pipeline ranks
  friend bool operator==(const CollectiveUse&, const CollectiveUse&) = default;
};

/// The collectives of a step, each once: the rest of the plan names them by their number.
class CollectiveUses {
 public:
  /// The number of a use, which is added when it is new.
  std::uint32_t of(const CollectiveUse& use);
  const CollectiveUse& operator[](std::size_t number) const { return uses_[number]; }
  std::size_t size() const { return uses_.size(); }
  auto begin() const { return uses_.begin(); }
  auto end() const { return uses_.end(); }
  std::span<const CollectiveUse> all() const { return uses_; }
  friend bool operator==(const CollectiveUses&, const CollectiveUses&) = default;

 private:
  std::vector<CollectiveUse> uses_;
};

/// Streams of communication: what shares one takes turns.
enum class Lane : std::uint8_t { layer, gradients, parameters, forward, backward, copies, joint };
inline constexpr std::size_t lane_count = 7;

/// What stages with the same layers have in common.
struct StageWork {
  std::vector<std::uint32_t> layers;  // kinds in the piece table, in forward order
  Tape forward, backward, backward_input, backward_weight;
  Bytes input, output;  // of a micro-batch: what a rank hands to the stages beside it
  std::int64_t parameters = 0;
  friend bool operator==(const StageWork&, const StageWork&) = default;
};

/// A step whose gradients overflowed ends without its update (loss_scaling.hpp).
enum class Update : std::uint8_t { done, skipped };

/// A value: lowering (methods/lower.hpp) only reads it. plan_step() leaves out what depends on the
/// network; complete_plan() adds it.
struct StepPlan {
  Scenario scenario;
  Placement placement;
  Batch batch;
  Schedule schedule;
  PieceTable layers;
  PieceList pieces;  // of layers and stages, as tapes name them
  std::vector<StageWork> works;
  std::vector<std::uint32_t> work_of;  // by stage
  CollectiveUses uses;
  Flops model_flops;            // of a step
  std::size_t seq_length = 0;   // tokens of a sample; 0: samples have none
  std::int64_t parameters = 0;  // of the whole model
  std::int64_t tied_copy = 0;   // parameters that the last stage holds of the first one's
  std::vector<std::uint32_t> overflow_uses;         // of the check, one after the other
  std::optional<std::uint32_t> overflow_of_stages;  // and the last, over the pipeline
  Update update = Update::done;
  // What the framework adds to each use where nothing computes beside it; empty: nothing.
  std::vector<Time> added;

  const StageWork& work(std::uint32_t stage) const { return works[work_of[stage]]; }
  std::size_t size(Family family) const;
  Time added_to(std::uint32_t use) const { return use < added.size() ? added[use] : Time{}; }
  friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

/// Throws InputError with all that does not come out even. `device` computes every stage;
/// `microbatches` in place of the scenario's, when it is not 0.
StepPlan plan_step(const Scenario& scenario, const Workload& workload, std::size_t world,
                   const Accelerator& device, const CostModel& cost, std::size_t microbatches = 0);

}  // namespace rehearse
