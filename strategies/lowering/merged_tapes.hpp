// The pass over a tape that joins what nothing can interrupt: the kernels of a stretch become one
// op that takes as long as all of them, and so do the collectives among them that nothing can hold
// up, unless a collective beside the kernels slows those and only those. A sum in place of a walk,
// and the same times.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "strategies/fold/step_network.hpp"

namespace rehearse {

/// A stretch of a tape, or one step that stays alone.
struct Stretch {
  const TapeStep* step = nullptr;  // that one, or the first
  bool is_merged = false;
  bool is_whole = false;      // beside an exchange: what follows waits for that
  Time time;                  // of merged kernels and collectives
  std::vector<Time> kernels;  // of them, each alone
  std::array<Time, dimension_count> exchanged{}, hidden{};  // as in MergedOp
};

class MergedTapes {
 public:
  /// All must outlive it.
  MergedTapes(const StepPlan& plan, StepNetwork& network, const FoldedRanks& folded)
      : plan_{plan}, network_{network}, folded_{folded} {}

  /// The steps [begin, end) of a tape, made once. `with_exchanges`: nothing holds them up.
  const std::vector<Stretch>& of(const Tape& tape, std::size_t begin, std::size_t end,
                                 bool with_exchanges);

 private:
  bool merges(std::uint32_t use) const;
  void add_exchange(Stretch& stretch, const TapeStep& step, Time kernels) const;

  const StepPlan& plan_;
  StepNetwork& network_;
  const FoldedRanks& folded_;
  std::map<std::tuple<const Tape*, std::size_t, std::size_t, bool>, std::vector<Stretch>> known_;
};

}  // namespace rehearse
