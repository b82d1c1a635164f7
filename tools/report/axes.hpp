// Axes: where the numbers stand, and how values become pixels.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "tools/report/svg.hpp"

namespace rehearse {

/// About `count` round values (1, 2 or 5 times a power of ten) from `low` to `high`.
std::vector<double> round_ticks(double low, double high, std::size_t count);
/// Powers of ten within the range, with 2 and 5 between them where it is short.
std::vector<double> log_ticks(double low, double high);

/// About `count` powers of two within the range, equally far apart: for sizes in bytes.
std::vector<double> binary_ticks(double low, double high, std::size_t count);

/// One direction of a plot: values to pixels, linear or logarithmic.
struct Scale {
  double low = 0, high = 1;   // of values, low < high
  double begin = 0, end = 1;  // of pixels
  bool logarithmic = false;   // then low > 0
  bool is_binary = false;     // logarithmic, with ticks at powers of two
  double operator()(double value) const;
  std::vector<double> ticks(std::size_t about) const;
};
/// A logarithmic scale whose ends leave some room around the values, which are above 0.
Scale log_scale(double least, double most, double begin, double end);

/// "1.5k", "20M": at most four digits.
std::string short_number(double value);

/// Grid, numbers and names of a plot's two axes; y grows upwards.
struct PlotFrame {
  Scale x, y;
  std::string x_name, y_name;
  std::string (*x_text)(double) = short_number;
  std::string (*y_text)(double) = short_number;
};
void draw_axes(Svg& svg, const PlotFrame& frame);

/// Below y, from `begin` to `end` of time, with numbers in one unit.
void draw_time_axis(Svg& svg, Time whole, double x_begin, double x_end, double y_top,
                    double y_bottom);

}  // namespace rehearse
