// A bar for each value of an axis, as a figure: what a lesson's answer does along it.
#pragma once

#include <string>
#include <vector>

#include "tools/report/figure.hpp"

namespace rehearse {

struct LabBar {
  std::string label, words;  // the axis' value; the bar's own value with its unit
  double part = 0;           // of the longest one, 0 to 1
  bool is_now = false;       // where the scenario stands
};

Figure bars_figure(std::string_view title, const std::vector<LabBar>& bars,
                   const FigureSize& size = {});

}  // namespace rehearse
