// What happens to gradients and parameters between the last backward pass and
// the next step: sums over ranks that share weights, the norm, the optimizer.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "strategies/binding/bind.hpp"
#include "strategies/binding/site.hpp"

namespace rehearse {

/// What a rank updates of each of its stages: all, or the parts of buckets that
/// ZeRO leaves it.
class Ownership {
 public:
  Ownership(const StepPlan& plan, const StepProgram& step, const ModelLayout& layout);
  const std::vector<Run>& runs(Rank rank, std::uint32_t stage) const;
  bool is_cut() const { return is_cut_; }

 private:
  std::map<std::pair<Rank, std::uint32_t>, std::vector<Run>> runs_;
  bool is_cut_ = false;
};

/// The kernels at the end of a step, on one rank.
class UpdateSite {
 public:
  UpdateSite(BindingModel& model, const StepPlan& plan, const Ownership& ownership,
             const TrainingNumbers& numbers, Rank rank, std::uint32_t pipeline_rank, bool averages)
      : calls{&model.buffers},
        model_{model},
        plan_{plan},
        ownership_{ownership},
        numbers_{numbers},
        rank_{rank},
        pipeline_rank_{pipeline_rank},
        averages_{averages} {}

  /// Adds up the gradients of micro-batches that lie apart.
  void sum_microbatches();
  void bind(std::string_view piece);
  /// Of a bucket of gradients that travels compressed; `number` counts its
  /// kernels of this name.
  void bind_compressed(std::string_view piece, const Run& bucket, std::size_t number);
  Slice packets(const Run& bucket);
  Slice largest(const Run& bucket);  // gradient, of all ranks once they have agreed
  Slice partial();                   // gradients.pack leaves them here
  Slice norm() { return model_.buffers.of_rank("norm", Bytes{4}); }
  Slice overflow() { return model_.buffers.of_rank("overflow", Bytes{4}); }  // 1: there was one

  CallList calls;

 private:
  std::vector<std::uint32_t> stages() const;
  template <class Visit>
  void for_each_tensor(Visit visit) const;
  void copy_partial(bool back);
  void take_norm();
  void look_for_overflow();
  void begin_update();
  void elementwise(std::string_view piece);
  void layerwise(std::string_view piece);
  void end_update();
  void bind_sparse(std::string_view piece, const Run& bucket, std::size_t number);
  Slice state() { return model_.buffers.of_rank("state", Bytes{64}); }
  Slice slice(StateKind kind, const Run& run) { return model_.buffers.state(kind, run); }
  /// What the optimizer updates.
  Slice weights(const Run& run) {
    return slice(model_.buffers.stored().has_masters() ? StateKind::masters : StateKind::parameters,
                 run);
  }
  bool scales_loss() const { return plan_.scenario.training.loss_scaling == LossScaling::dynamic; }

  BindingModel& model_;
  const StepPlan& plan_;
  const Ownership& ownership_;
  const TrainingNumbers& numbers_;
  Rank rank_;
  std::uint32_t pipeline_rank_;
  bool averages_;  // the replicas' parameters are averaged behind this update
};

/// Whether a tensor's gradients are in parts on the tensor ranks: whole weights
/// of blocks and of the last norm, where each rank sees its own tokens only.
bool is_partial(const BindingModel& model, std::uint32_t layer, std::size_t tensor);

/// The part of `run` that `other` covers; of size 0 if none.
Run overlap(const Run& run, const Run& other);

}  // namespace rehearse
