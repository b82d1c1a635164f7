// Names the ops of a Program that wait for each other in a circle, for the engines' messages.
#pragma once

#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace rehearse {

/// "cannot finish: op 3 'x' (rank 0, comm 0) waits for op 5 'y' (rank 1, comm 0) by an edge, which
/// waits for op 3 by its stream". Some op must be unfinished, and none of them able to begin.
std::string waiting_cycle(const Program& program, const std::vector<bool>& finished);

}  // namespace rehearse
