// ZeRO (Rajbhandari et al. 2020): replicas share what they would each hold in full. Of P parameters
// over N ranks, with K bytes of optimizer state each, a rank holds in bytes
//
//   stage 1   (2 + 2) P + K P / N          gradients reduce-scattered, parameters gathered after
//   stage 2   2 P + (2 + K) P / N          … and reduced after every micro-batch
//   stage 3   (2 + 2 + K) P / N            … and parameters gathered layer by layer, twice (FSDP)
//
// and, from stage 2 on, whole gradients from their layer's backward pass until they are reduced.
//
//   stage 3   compute    │ F layer 0 │ F layer 1 │ F layer 2 │     gathers run `prefetch_layers`
//             gather  [0][1]────────[2]─────────[3]                ahead of the layer in use
//
// With zero_shard_ranks the ranks of a part of the replicas share one copy, and the gradients are
// all-reduced among the copies (hybrid sharding).
#pragma once

#include <vector>

#include "strategies/methods/data_parallel.hpp"
#include "strategies/methods/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace rehearse {

class Zero final : public Strategy {
 public:
  void plan(const StepPlan& plan, CollectiveUses& uses) override;
  void begin_step(Emitter& out, std::uint32_t pipeline_rank) override;
  bool acts_between_layers(const LayerMoment& moment) const override;
  void before_layer(Emitter& out, const LayerMoment& moment) override;
  void after_layer(Emitter& out, const LayerMoment& moment) override;
  void finish_gradients(Emitter& out, std::uint32_t pipeline_rank) override;
  std::int64_t updated_parameters(const StepPlan& plan, std::uint32_t pipeline_rank) const override;
  void end_step(Emitter& out, std::uint32_t pipeline_rank) override;

 private:
  static constexpr std::uint32_t no_use = UINT32_MAX;
  struct Part {  // of a stage's gradients, or of its parameters
    Bucket bucket;
    std::uint32_t scatter = no_use, average = no_use, gather = no_use;
    Bytes begin;  // in the stage's gradients, behind those of later layers
  };
  struct Gathered {  // by layer of the stage: what its next use waits for
    std::vector<Emitter::Ops> ops;
    std::vector<bool> is_there;
  };

  bool reduces_after(const LayerMoment& moment) const;
  void reduce(Emitter& out, const Part& part, bool last_microbatch);
  void gather_ahead(Emitter& out, const LayerMoment& moment);
  template <class Visit>
  void for_each_part(Emitter& out, std::uint32_t pipeline_rank, Visit visit) const;
  void release(Emitter& out, const LayerMoment& moment);
  void plan_broadcasts(const StepPlan& plan, Bytes weight, CollectiveUses& uses);
  void broadcast(Emitter& out, std::uint32_t pipeline_rank);
  void hold_gradients(Emitter& out, const LayerMoment& moment) const;
  void add_parts(const StepPlan& plan, const StageWork& work, Held held, CollectiveUses& uses,
                 std::vector<Part>& parts) const;

  std::size_t stage_ = 1, prefetch_ = 1;
  bool overlaps_gradients_ = false, overlaps_parameters_ = false, shards_ = false;
  bool copies_gathered_ = false;           // from the ranks' parts to the tensors
  std::vector<std::vector<Part>> parts_;   // by kind of stage; stage 3: by layer
  std::vector<std::vector<Bytes>> whole_;  // parameters of each layer, by kind of stage
  std::vector<Gathered> gathered_;         // by stage
  std::vector<std::vector<std::uint32_t>> broadcasts_;  // uses, by kind of stage; stage 3: by layer
  std::vector<Emitter::Ops> broadcast_;                 // the last one, by pipeline rank
  std::vector<Emitter::Ops> last_;                      // exchange of gradients, by pipeline rank
};

}  // namespace rehearse
