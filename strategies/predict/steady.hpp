// Steady state: when the rounds of a pipeline repeat exactly, the rest need not be simulated.
//
//   rank 0  F F F F │F B│F B│F B│F B│ … │F B│ B B B B
//   rank 1    F F F │F B│F B│F B│F B│ … │F B│ B B B
//
// A round: as many actions as micro-batches enter and leave the rank.
// Say that on every pipeline rank some rounds of its steady stretch each begin and end, op by op,
// exactly D after the round before, with the same D everywhere. An op's begin is the latest end
// among the ops it waits for, all of them in the same or the one or two rounds before, so another
// round put in there would be D later again, and all that follows it, the way out too, D later than
// it was. So every further round adds D to the end, exactly.
//
// Where a wait goes down the pipeline and comes back, rounds differ from their neighbours but are
// like those as many rounds before as there are ranks: then so many further ones add their D.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/program/timeline.hpp"
#include "strategies/lowering/step_program.hpp"

namespace rehearse {

struct SteadyState {
  Time period;                // after which all repeats: one round, or one for each rank
  std::uint32_t advance = 1;  // micro-batches of that
  /// By pipeline rank: the ops of the last period, as actions [begin, end).
  struct Round {
    std::uint32_t begin = 0, end = 0;
  };
  std::vector<Round> rounds;
};

struct Settling {
  std::optional<SteadyState> state;  // none where the rounds do not (yet) repeat
  /// Pipeline ranks that repeat at the slowest one's pace; all where there is too little to
  /// compare.
  std::size_t settled_ranks = 0;
  /// Rounds before those compared that repeated already, on every rank: as many fewer would do.
  std::uint32_t spare_rounds = 0;
};
/// `advance` is the schedule's: 1, or the pipeline ranks for interleaved ones.
Settling find_steady_state(const StepProgram& step, const Timeline& timeline,
                           std::uint32_t advance);

}  // namespace rehearse
