// Curves over one axis: scaling, bandwidth over size, a sweep's steps.
#pragma once

#include <string>
#include <vector>

#include "tools/report/axes.hpp"
#include "tools/report/figure.hpp"

namespace rehearse {

struct CurvePoint {
  double x = 0, y = 0;
  std::string tip;
  bool is_hollow = false;  // it does not count: does not fit, for example
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // by x
  bool is_joined = true;           // else dots only
};

struct CurvesPlot {
  std::string name, title, description;  // of the figure
  std::string x_name, y_name;
  bool x_log = false, y_log = false;
  bool x_is_binary = false;  // x_log, with ticks at powers of two
  std::string (*x_text)(double) = short_number;
  std::string (*y_text)(double) = short_number;
  double y_most = 0;  // what the axis reaches at least
  std::vector<Curve> curves;
};

/// Points without a finite place (or not above 0 where the axis is logarithmic) are left out.
Figure curves_figure(const CurvesPlot& plot, const FigureSize& size = {});

}  // namespace rehearse
