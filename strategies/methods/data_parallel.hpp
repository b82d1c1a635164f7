// Synchronous data parallelism: every replica computes the gradients of its own samples, and an
// all-reduce gives each of them the mean (Li et al. 2020, PyTorch Distributed).
//
//   compute  │ F0 │ B0 │ F1 │ B1 … layer 2 │ layer 1 │ layer 0 │        │ optimizer │
//   comm                            └▶[bucket 0][bucket 1]─ ─ ─[bucket 2]┘
//
// Micro-batches before the last only add to the gradients (accumulation). With full overlap a step
// takes max(backward, communication) and what cannot overlap: the first bucket's computation and
// the last one's communication.
#pragma once

#include <vector>

#include "strategies/methods/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace rehearse {

class DataParallel final : public Strategy {
 public:
  void plan(const StepPlan& plan, CollectiveUses& uses) override;
  void begin_step(Emitter& out, std::uint32_t pipeline_rank) override;
  bool acts_between_layers(const LayerMoment& moment) const override;
  void before_layer(Emitter&, const LayerMoment&) override {}
  void after_layer(Emitter& out, const LayerMoment& moment) override;
  void finish_gradients(Emitter& out, std::uint32_t pipeline_rank) override;
  std::int64_t updated_parameters(const StepPlan& plan, std::uint32_t pipeline_rank) const override;
  void end_step(Emitter& out, std::uint32_t pipeline_rank) override;

 private:
  struct Reduction {
    Bucket bucket;
    std::uint32_t use = 0;
    Bytes begin;  // behind the buckets before it
  };
  void reduce(Emitter& out, const Reduction& reduction);

  bool overlaps_ = false;
  std::vector<std::vector<Reduction>> reductions_;      // by kind of stage
  std::vector<std::vector<std::uint32_t>> broadcasts_;  // uses, by kind of stage
  std::vector<Emitter::Ops> last_;                      // exchange of each pipeline rank
};

/// Parameters come in two kinds: those that all dp × cp ranks hold, and experts, which dp × cp / ep
/// of them do.
enum class Held : std::uint8_t { by_all, by_expert_ranks };
Family replicas_of(Held held);

/// The gradients (or parameters) of each layer of a stage, at `each` bytes.
std::vector<Bytes> layer_bytes(const StepPlan& plan, const StageWork& work, Held held, Bytes each);
std::int64_t parameters_of(const LayerPieces& layer, Held held);
/// Parameters of all stages that a pipeline rank holds.
std::int64_t parameters_of(const StepPlan& plan, std::uint32_t pipeline_rank, Held held);
std::int64_t parameters_of(const StepPlan& plan, std::uint32_t pipeline_rank);
/// Whether a layer's gradients are complete for its micro-batch after this.
bool completes_gradients(ActionKind action);
/// The optimizer's kernels for `parameters` of them.
void run_optimizer(Emitter& out, std::int64_t parameters, Time before = {});

}  // namespace rehearse
