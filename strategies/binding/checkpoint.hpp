// A training between two steps, as bytes: resumed from them it goes on with the
// same bits.
//
//   "rehearse checkpoint 1\n" | next step | key of the step | blocks | bytes of
//   each block | checksum
//
// The key is a hash of the Program and its layout: another strategy, model or
// optimizer is refused. Numbers lie as in memory, little-endian on all machines
// this runs on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "strategies/binding/training_data.hpp"

namespace rehearse {

/// What all ranks hold after `next_step` steps; `memory` has every block of `persistent`, and is
/// asked for them in their order.
std::string checkpoint_of(const BoundStep& step, std::uint64_t next_step, const RankMemory& memory);

/// Puts it back (where a rank's memory is here) and returns the number of the next step. Throws
/// InputError, before anything is changed, where the bytes are not a whole checkpoint of this very
/// step. `name` is for messages.
std::uint64_t restore(const BoundStep& step, std::string_view bytes, const std::string& name,
                      const RankMemory& memory);

}  // namespace rehearse
