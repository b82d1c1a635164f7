// Compares the two engines on one Program: the same makespan and the same end of every op.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "sim/simgrid/simgrid_simulator.hpp"

namespace rehearse {

/// The promise of both engines to each other, relative to an op's end.
inline constexpr double engines_agree_within = 1e-3;

struct Difference {
  double relative = 0;
  std::string where = "none";
};

/// The largest difference of an op's end between two timelines, beyond the picosecond that each op
/// on the way there may have been rounded by. The makespan is one of them.
inline Difference largest_difference(const Program& program, const Timeline& ours,
                                     const Timeline& theirs) {
  Difference largest;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const std::int64_t a = ours.spans[i].end.ps(), b = theirs.spans[i].end.ps();
    const auto apart = static_cast<double>(std::max(a - b, b - a)) - static_cast<double>(i + 1);
    const double relative = apart / static_cast<double>(std::max({a, b, std::int64_t{1}}));
    if (relative <= largest.relative) continue;
    largest = {relative, fmt::format("{}: {} ps, reference {} ps",
                                     program.describe(static_cast<OpId>(i)), a, b)};
  }
  return largest;
}

/// FastSimulator against SimGridSimulator.
inline Difference compare_engines(const Program& program, Routing& routing) {
  const Roofline cost;
  const Timeline ours = FastSimulator{routing, cost}.run(program);
  const Timeline theirs = SimGridSimulator{routing, cost}.run(program);
  ASSERT(ours.link_bytes == theirs.link_bytes);
  return largest_difference(program, ours, theirs);
}

}  // namespace rehearse
