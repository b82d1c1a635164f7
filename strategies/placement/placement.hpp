// Who stands where: the coordinates of every rank in the parallel dimensions, the groups that
// communicate, and the arithmetic that must come out even before anything runs.
//
//   world 16, tp 2, dp 4, pp 2, ep 2, order "tp-cp-ep-dp-pp": the first varies fastest
//
//     rank  0  1  2  3  4  5  6  7 │  8  9 10 11 12 13 14 15
//     tp    0  1  0  1  0  1  0  1 │  0  1  0  1  0  1  0  1
//     dp    0  0  1  1  2  2  3  3 │  0  0  1  1  2  2  3  3
//     ep    0  0  1  1  0  0  1  1 │  0  0  1  1  0  0  1  1     out of dp × cp
//     pp    0  0  0  0  0  0  0  0 │  1  1  1  1  1  1  1  1
//
// As Megatron-LM places them (core/parallel_state.py, RankGenerator).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/scenario/scenario.hpp"
#include "strategies/placement/dimension.hpp"

namespace rehearse {

/// `expert` follows from `context` and `data`, which say it in another way.
struct Coordinates {
  std::size_t tensor = 0, context = 0, expert = 0, data = 0, pipeline = 0;
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

/// Ranks that keep copies of the same parameters, and how ZeRO and experts cut those sets: the
/// dp × cp ranks of one place in tp and pp.
enum class Replicas : std::uint8_t {
  all,      // reduce the gradients of all but the experts together
  experts,  // hold the same experts: dp × cp / ep of them, whose gradients are reduced apart
  shards,   // share one copy of what ZeRO cuts: neighbours, zero_shard_ranks of them
  copies,   // hold the same part of it
};

/// Groups of one size: ranks ascending in each, groups by their first rank.
struct RankGroups {
  std::size_t size = 1;
  std::vector<Rank> ranks;
  std::size_t count() const { return ranks.size() / size; }
  std::span<const Rank> operator[](std::size_t group) const {
    return std::span{ranks}.subspan(group * size, size);
  }
  friend bool operator==(const RankGroups&, const RankGroups&) = default;
};

class Placement {
 public:
  /// All is checked by placement_problems() first.
  Placement(const Parallelism& parallelism, std::size_t world);

  std::size_t world() const { return world_; }
  std::size_t size(Dimension dimension) const { return steps_[at(dimension)].size; }
  std::size_t size(Replicas replicas) const { return cuts_[at(replicas)].size; }

  Coordinates coordinates(Rank rank) const;
  /// The rank at these; `expert` is not looked at.
  Rank rank(const Coordinates& coordinates) const;

  RankGroups groups(Dimension dimension) const;
  RankGroups groups(Replicas replicas) const;
  /// The ranks of two pipeline places that are alike in all else.
  RankGroups ends(std::size_t first, std::size_t last) const;
  /// The group that has this member.
  std::vector<Rank> group(Dimension dimension, Rank member) const;
  std::vector<Rank> group(Replicas replicas, Rank member) const;

  friend bool operator==(const Placement&, const Placement&) = default;

 private:
  // A coordinate: (number / stride) mod size, where the number is a rank, or its place among its
  // replicas, in the order of the ranks.
  struct Step {
    std::size_t size = 1, stride = 1;
    std::size_t of(std::size_t number) const { return number / stride % size; }
    friend bool operator==(const Step&, const Step&) = default;
  };
  static constexpr std::size_t at(Dimension d) { return static_cast<std::size_t>(d); }
  static constexpr std::size_t at(Replicas r) { return static_cast<std::size_t>(r); }
  const Step& step(Dimension d) const { return steps_[at(d)]; }
  std::size_t replica(std::size_t rank) const;
  void append_along(const Step& step, std::size_t rank, std::vector<Rank>& ranks) const;
  void append_replicas(const Step& cut, std::size_t rank, std::vector<Rank>& ranks) const;

  std::size_t world_ = 1;
  std::array<Step, dimension_count> steps_;  // of ranks; the expert's of replicas
  std::array<Step, 4> cuts_;                 // of replicas, by Replicas
  Dimension inner_{}, outer_{};              // of context and data: which varies faster
};

/// Throws InputError with everything in placement_problems().
Placement place_ranks(const Parallelism& parallelism, std::size_t world);

/// How many stages the layers are cut into: pp × vpp; pp × 2 for schedules in the shape of a V.
std::size_t stage_count(const Parallelism& parallelism);

struct Batch {
  std::size_t global = 1, microbatches = 1;  // sequences a step; micro-batches of a rank
  friend bool operator==(const Batch&, const Batch&) = default;
};
/// All is checked by batch_problems() first.
Batch batch_of(const Training& training, std::size_t data_parallel);

/// What of a model must be divided; 0: it has no such thing.
struct SplitNumbers {
  std::size_t layers = 0, heads = 0, kv_heads = 0, intermediate = 0, experts = 0, seq_length = 0;
};

// Everything that does not come out even, with the arithmetic in the message.

std::vector<KeyProblem> placement_problems(const Parallelism& parallelism, std::size_t world);
std::vector<KeyProblem> batch_problems(const Training& training, std::size_t data_parallel);
std::vector<KeyProblem> model_problems(const Parallelism& parallelism, const SplitNumbers& model);

}  // namespace rehearse
