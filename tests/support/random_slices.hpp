// Random Programs whose ops touch a few bytes over and over, so that conflicts are common: for
// verify() and for the text form. They are not meant to be simulated.
#pragma once

#include "sim/program/program.hpp"
#include "tests/support/random_program.hpp"

namespace rehearse {

/// Every kind of op and connection on 2 to 5 ranks; with `folded`, paths for all connections too.
Program random_sliced_program(Draw& draw, bool folded = false);

/// The slices an op touches, spelled out per rank as sim/program/verify.hpp defines them.
struct Touch {
  Rank rank{};
  Slice slice;
  bool writes = false;
};
std::vector<Touch> touches_of(const Program& program, OpId id);
bool conflict(const Touch& a, const Touch& b);

}  // namespace rehearse
