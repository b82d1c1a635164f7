// Equal shares: every hop of a pipeline gets its part of each link that others of it cross too.
#pragma once

#include "sim/engine/paths.hpp"
#include "strategies/collectives/pattern.hpp"

namespace rehearse {

/// Limits the hops of each stage to bandwidth / hops that cross, on each of their links; `paths`
/// are the pattern's and are limited likewise. NCCL's channels are thread blocks of fixed number,
/// which do not lend each other bandwidth either. A pipeline in its steady state runs at these
/// rates anyway; paced, it runs at them from the start, no link is ever short, and its rounds
/// repeat exactly instead of drifting chaotically.
/// What goes through a switch that reduces gets the share that the library reaches there.
void pace(Pattern& pattern, Paths& paths, const Topology& topology);

/// Gives every hop of a ring the mean latency of all of them. A chunk goes round almost twice (in
/// an all-gather once) and passes every hop as often, whoever its neighbours are: so the ring takes
/// the sum of its way, as NCCL's own model has it, 2(N-1) hops of a network and the others within
/// nodes. Left alone, steps that wait for one another would all pay the longest hop.
void even_out_rings(Pattern& pattern, Paths& paths);

/// Where a host hands on one message at a time (Library::one_at_a_time), the next one of a
/// connection begins when the one before has arrived. In a ring that holds at every one of its
/// 2(n-1) steps, also where most of its n ranks are in the same node: the connection between nodes
/// sends at each step, and the others wait for it.
void await_messages(Pattern& pattern, const Paths& paths);

}  // namespace rehearse
