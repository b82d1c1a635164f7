// Equal shares: every hop of a pipeline gets its part of each link that others of it cross too.
#pragma once

#include "sim/paths.hpp"
#include "strategies/collectives/pattern.hpp"

namespace rehearse {

/// Limits the hops of each stage to bandwidth / hops that cross, on each of their links; `paths`
/// are the pattern's and are limited likewise. NCCL's channels are thread blocks of fixed number,
/// which do not lend each other bandwidth either. A pipeline in its steady state runs at these
/// rates anyway; paced, it runs at them from the start, no link is ever short, and its rounds
/// repeat exactly instead of drifting chaotically.
void pace(Pattern& pattern, Paths& paths, const Topology& topology);

}  // namespace rehearse
