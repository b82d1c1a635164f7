// Predicted against measured on logarithmic axes: on the diagonal it is right.
#pragma once

#include <string>
#include <vector>

#include "tools/report/figure.hpp"

namespace rehearse {

struct ScatterPoint {
  double measured = 0, predicted = 0;  // in the same unit
  std::string name;
  std::size_t group = 0;  // index into ScatterPlot::groups
};

struct ScatterPlot {
  std::string name, title, unit;
  std::vector<std::string> groups;
  std::vector<ScatterPoint> points;
};

/// Points that are not above 0 are left out. Of very many, those that fall onto the same pixel are
/// drawn once and counted.
Figure scatter_figure(const ScatterPlot& plot, const FigureSize& size = {});

}  // namespace rehearse
