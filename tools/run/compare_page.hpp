// What `rehearse compare --report` writes: both timelines under one another, predicted against
// measured, and the largest errors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/run/comparison.hpp"

namespace rehearse {

struct ComparedSides {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // what was predicted and measured, how
  const std::vector<TraceSlice>&predicted, &measured;
};

std::string compare_page(const Comparison& comparison, const ComparedSides& sides);

}  // namespace rehearse
