// Imperfection: what makes ranks, kernels and exchanges slower than planned, or now and then
// faster.
//
//   rank 0  │ k0 │ k1  │k2│ k3 │              kernel_jitter: each kernel its own factor
//   rank 1  │  k0  │  k1   │  k2 │  k3  │     slow_ranks, rank_jitter: one factor for all of them
//   rank 2  │ k0 │ k1 ▒▒▒▒▒ │ k2 │ k3 │       a pause after every P of its own work
//
// Pauses count a rank's own kernel time, not the clock on the wall: that is when a garbage
// collector runs (so many objects, so many kernels), and it is a property of the Program, the same
// in every engine. A rank that computes for T pauses floor((phase + T) / P) times; where in its
// period a step begins, the phase, is drawn: for each rank, or once for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse {

class Imperfections {
 public:
  Imperfections(const Imperfection& imperfection, std::size_t world);

  /// Every kernel and every exchange is as planned.
  bool is_ideal() const { return !perturbs_kernels_ && !perturbs_exchanges(); }
  bool perturbs_kernels() const { return perturbs_kernels_; }
  bool perturbs_exchanges() const { return imperfection_.network_jitter > 0; }
  /// Something comes from the seed.
  bool is_drawn() const { return distinguishes_ranks() || imperfection_.pause_length > Time{}; }
  /// Something is drawn for every rank, so that no two of them are alike.
  bool distinguishes_ranks() const;
  /// By rank: what is its own; ranks of one colour may be alike. Empty: all are.
  const std::vector<std::uint64_t>& colours() const { return colours_; }

  bool perturbs(Rank rank) const;
  /// How long a rank's kernel takes, the `number`-th of the step.
  Time kernel(Rank rank, std::uint64_t number, Time planned) const;
  /// How long it pauses while its work goes from `before` to `after`.
  Time pauses(Rank rank, Time before, Time after) const;
  /// How many times as long an exchange takes: at least 1, for no draw gives a cable more rate.
  double exchange(Rank first, std::uint64_t number) const;

 private:
  struct Rates {
    double factor = 1;  // of all its kernels
    bool pauses = false;
    Time phase;
    friend bool operator==(const Rates&, const Rates&) = default;
  };
  Imperfection imperfection_;
  bool perturbs_kernels_ = false;
  std::vector<Rates> ranks_;
  std::vector<std::uint64_t> colours_;
};

/// In words, for reports; empty where nothing is imperfect.
std::string describe(const Imperfection& imperfection);

}  // namespace rehearse
