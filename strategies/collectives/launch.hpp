// A collective's launch as ops of a program: for expanded steps, dumped programs and traces.
#pragma once

#include <cstdint>
#include <span>

#include "strategies/collectives/rehearsal.hpp"

namespace rehearse {

/// A message of no bytes from a rank to itself that takes so long. It is under way beside kernels,
/// as all of the collective is.
ConnectionId connect_launch(Program& program, Rank rank, Time launch);

/// The whole program of a collective over `group`, launched on every rank: it takes the time that
/// the rehearsal's `run` tells. Of a rehearsal that is not folded.
Program launched_program(const CollectiveRehearsal& rehearsal, std::span<const Rank> group,
                         Bytes size, std::uint16_t protocol);

}  // namespace rehearse
