// Points of a sweep as text, for processes that share its work; exact to the last bit.
#pragma once

#include <string>
#include <vector>

#include "tools/sweep/sweep_run.hpp"

namespace rehearse {

std::string points_text(const std::vector<SweepPoint>& points);
/// Each point from whoever has it. Texts are of the same sweep.
std::vector<SweepPoint> joined_points(const std::vector<std::string>& texts);

}  // namespace rehearse
