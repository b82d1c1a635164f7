// Gradient compression between data-parallel ranks: fewer bytes for more kernels.
//
//   dgc   compute │ backward … layer 1 │clip│add up│sample│select│ layer 0 │ … │ add sparse │ sgd │
//         comm                                                  └▶[all-gather of k (index, value)]┘
//   fp16  compute │ backward … layer 1 │cast│ layer 0 …                       │ cast back │ adam │
//         comm                              └▶[all-reduce of half the bytes]─ ─ ─┘
//   int8  as fp16, with a quarter of the bytes. Ranks first agree on the largest gradient of a
//         bucket (all-reduce of 4 bytes), so that their codes have one scale and can be added on
//         the way; the bucket before it is cast meanwhile, and nobody waits.
//
// Deep gradient compression (Lin et al. 2018, arXiv:1712.01887), for a bucket of n gradients on N
// ranks, k = ceil((1 - sparsity) n):
//   u = m u + clip(g);  v = v + u;  send the k largest of v;  v, u = 0 there  (factor masking)
// The k-th largest is estimated from a sample (section 3, "hierarchical selection"). Every rank
// receives (N-1) k (4 + 4) bytes, indices and values, where a ring all-reduce has 2 (N-1)/N n · 4.
// Sums of sparse gradients are not sparse alike, so nothing is reduced on the way.
#pragma once

#include <optional>
#include <vector>

#include "strategies/methods/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace rehearse {

class CompressedDataParallel final : public Strategy {
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
  struct Part {
    Bucket bucket;
    Bytes begin;                      // behind the buckets before it
    std::vector<Piece> pack, unpack;  // kernels before and after the exchange
    Bytes received;                   // and kept until they are unpacked
    std::uint32_t use = 0;
    std::optional<Piece> look = {};           // for the largest gradient
    std::optional<std::uint32_t> agree = {};  // on it
  };
  /// A bucket whose ranks are agreeing on its largest gradient.
  struct Agreeing {
    const Part* part = nullptr;
    std::uint32_t stage = 0;
    Emitter::Ops agreed;
  };
  Part part_of(const StepPlan& plan, const Bucket& bucket, Family replicas,
               CollectiveUses& uses) const;
  void send(Emitter& out, const Part& part, std::uint32_t stage);
  void pack(Emitter& out, const Part& part);
  void pack_agreed(Emitter& out);

  CompressionKind method_{};
  bool overlaps_ = false;
  std::vector<std::vector<Part>> parts_;  // by kind of stage
  std::vector<Emitter::Ops> last_;        // exchange of each pipeline rank
  std::vector<Agreeing> agreeing_;        // the same
};

/// How many of `gradients` are sent: at least one.
std::int64_t sent_of(std::int64_t gradients, double sparsity);
/// Of each epoch of the warm-up: from 75 % to `sparsity`, the share that is sent falling by the
/// same factor from epoch to epoch. Over 4 epochs to 99.9 %: 75, 93.7, 98.4, 99.6 (the paper's).
std::vector<double> warmup_sparsities(const Compression& compression);
/// The kernels of one bucket before its exchange, and after it on `ranks` of them.
std::vector<Piece> dgc_pack(const Compression& how, bool has_momentum, std::int64_t gradients,
                            std::int64_t gradient_bytes);
std::vector<Piece> dgc_unpack(std::int64_t sent, std::size_t ranks, std::int64_t gradients,
                              std::int64_t gradient_bytes);
/// Whether velocity is kept by dgc, where the optimizer would keep it otherwise.
bool corrects_momentum(const Scenario& scenario);

}  // namespace rehearse
