// Whether a program is the collective that it is meant to be.
#pragma once

#include "kernels/host/collective_check.hpp"

namespace rehearse {

/// Runs the program with real numbers, each rank a thread, and counts those that are wrong in the
/// end. Rank r is at position r of the group; its data are in buffer 0, its result in buffer 1.
std::size_t wrong_numbers(const Program& program, const CollectiveCheck& check);

}  // namespace rehearse
