// One run of a Program on SimGrid, in the process it is called in. SimGrid's engine is a singleton
// that cannot be made twice, so simgrid_simulator.cpp calls this in a child process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/paths.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"

namespace rehearse {

/// Fills the spans, by OpId, and returns how many ops have finished; fewer than all means that the
/// rest waits in a cycle, and their spans end with Time::never(). `durations` are those of the
/// compute ops by Program::Op::work. At most once in the life of a process.
std::size_t run_on_simgrid(const Program& program, const Paths& paths, const Topology& topology,
                           std::span<const Time> durations, std::span<Timeline::Span> spans);

}  // namespace rehearse
