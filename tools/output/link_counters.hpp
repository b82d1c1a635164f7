// The load of links over time, as steps: what the trace draws as counters.
#pragma once

#include <vector>

#include "sim/engine/paths.hpp"
#include "sim/program/timeline.hpp"

namespace rehearse {

struct LinkLoad {
  struct Step {
    Time from;
    BytesPerSecond rate;  // until the next step
  };
  LinkId link{};
  std::vector<Step> steps;  // ends with a rate of zero
};

/// For `most` of the busiest links that the shown ranks' ops cross. Each transfer counts with its
/// mean rate from the end of its latency to its own end, so every byte is in.
std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline,
                                 const Paths& paths, const std::vector<bool>& shown_ranks,
                                 std::size_t most);

}  // namespace rehearse
