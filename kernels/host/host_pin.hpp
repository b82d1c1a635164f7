// Where threads run: a processor for each rank, when there are enough of them.
#pragma once

#include <cstddef>

namespace rehearse {

/// Binds the calling thread to its share of the processors, rank `rank` of `ranks`; does nothing
/// when ranks outnumber processors (they must share), or in a build without hwloc.
void pin_to_processor(std::size_t rank, std::size_t ranks);

/// Sleeps of the calling thread end when they should; by default 50 us late.
void sharpen_timers();

}  // namespace rehearse

/// What the module with hwloc exports: pin_to_processor().
extern "C" void rehearse_hwloc(std::size_t rank, std::size_t ranks);
