// The pass that decides how collectives are carried out, for programs that come from no prediction:
// a file, a benchmark. A lowered step has its decisions from lowering.
#pragma once

#include <string>

#include "sim/program/program.hpp"
#include "topology/routing.hpp"

namespace rehearse {

struct AlgorithmChoice {
  std::string algorithm = "auto";  // auto: what the machine's library takes, or the fastest
  std::uint16_t protocol = 0;      // of the topology's, where the algorithm is named
};

/// The same program in which every collective has an algorithm. A named one replaces what had been
/// decided; `auto` leaves that as it is. Throws InputError for an unknown name.
Program decide_collectives(Program program, Routing& routing, const AlgorithmChoice& choice = {});

/// Decides, then expands.
Program expand_collectives(const Program& program, Routing& routing, const AlgorithmChoice& choice);

}  // namespace rehearse
