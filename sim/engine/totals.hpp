// What both engines add up when all ops have their times.
#pragma once

#include "sim/engine/paths.hpp"
#include "sim/program/timeline.hpp"

namespace rehearse {

/// Fills makespan and, unless the program is folded, link_bytes.
void add_up(const Program& program, const Paths& paths, const Topology& topology,
            Timeline& timeline);

}  // namespace rehearse
